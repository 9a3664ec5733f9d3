"""What a person who has looked at the results says about them; figures are in the tables."""

REMARKS: dict[str, list[str]] = {"cifar10": [], "mnist": [], "cora-ml": []}
