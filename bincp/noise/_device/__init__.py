"""Noise drawn where a model is, equal to the C code to the bit; only imported beside torch."""

from bincp.noise._device._sampler import DeviceSampler, check_tensor, device_sampler

__all__ = ["DeviceSampler", "check_tensor", "device_sampler"]
