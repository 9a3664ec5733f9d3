"""A service of prediction sets: one input a request, calibrations that change while it runs.

It needs FastAPI and a server: ``pip install fastapi uvicorn``. A module of yours makes the app:

    from service import create_app
    app = create_app("classifier.json", network, audit="audit.jsonl")

and ``uvicorn mymodule:app --workers 4`` serves it. The workers share nothing but the files: each
call of `RobustClassifier.predict` draws a secret seed of its own.
"""

import asyncio
import hashlib
import json
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from bincp.sampling import RobustClassifier


class Request(BaseModel):
    """The elements of one input, in the order of its flat array."""

    x: list[float]


class Answer(BaseModel):
    """The labels in the set, and what the answer can be found by later."""

    id: str
    labels: list[int]
    calibration: str


@dataclass(frozen=True)
class Calibration:
    """A classifier, and the digest of the file that it came from."""

    classifier: RobustClassifier
    digest: str

    @classmethod
    def load(cls, path: Path, model: Any) -> "Calibration":
        """Read a file; one of another model, or a damaged one, is an error."""
        while True:  # the file may be replaced meanwhile
            content = path.read_bytes()
            classifier = RobustClassifier.load(path, model)
            if path.read_bytes() == content:
                return cls(classifier, hashlib.sha256(content).hexdigest())

    def checked(self, x: list[float]) -> Any:
        """Return an input as an array, or refuse it before it joins a batch."""
        made_with = self.classifier.rule.provenance_
        assert made_with is not None
        shape, dtype = made_with["input_shape"], np.dtype(made_with["input_dtype"])
        values = np.array(x)
        if values.size != np.prod(shape):
            raise ValueError(f"x must be {np.prod(shape)} numbers, got {values.size}")
        with np.errstate(all="ignore"):  # what does not fit is refused below
            array = values.astype(dtype).reshape(shape)
        if not np.isfinite(array).all():
            raise ValueError(f"x must be finite numbers of {dtype}")
        if dtype.kind == "u" and (array != values.reshape(shape)).any():
            raise ValueError("x must be grey levels from 0 to 255")
        return array


@dataclass(frozen=True)
class Waiting:
    """One input, the calibration that answers it, and the future that its own answer goes to."""

    x: Any
    calibration: Calibration
    answer: "asyncio.Future[list[int]]"
    id: str


class Service:
    """Collects the requests of a few milliseconds into one call, and hands each its own answer."""

    def __init__(
        self, path: Path, model: Any, audit: Path | None, max_batch: int, wait: float
    ) -> None:
        self.path, self.model, self.audit = path, model, audit
        self.max_batch, self.wait = max_batch, wait
        self.calibration = Calibration.load(path, model)
        self.waiting: asyncio.Queue[Waiting] = asyncio.Queue()

    def rotate(self) -> str:
        """Take the file that is there now; requests that wait keep the calibration they met."""
        self.calibration = Calibration.load(self.path, self.model)
        return self.calibration.digest

    async def ask(self, x: list[float]) -> Answer:
        """Return the answer to one input."""
        calibration = self.calibration
        array = calibration.checked(x)
        future: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        request = Waiting(array, calibration, future, uuid.uuid4().hex)
        await self.waiting.put(request)
        labels = await future
        return Answer(id=request.id, labels=labels, calibration=calibration.digest)

    async def run(self) -> None:
        """Answer requests, batch by batch, until the task is cancelled."""
        while True:
            batch = [await self.waiting.get()]
            await asyncio.sleep(self.wait)
            while len(batch) < self.max_batch and not self.waiting.empty():
                batch.append(self.waiting.get_nowait())
            for calibration in {request.calibration for request in batch}:
                await self.answer([one for one in batch if one.calibration is calibration])

    async def answer(self, batch: list[Waiting]) -> None:
        """Answer requests of one calibration; an error of one does not touch the others."""
        try:
            sets = await asyncio.to_thread(self.predict, batch)
        except Exception as error:  # whatever it is, it belongs to a request
            if len(batch) > 1:
                for request in batch:
                    await self.answer([request])
            elif not batch[0].answer.cancelled():
                batch[0].answer.set_exception(error)
            return
        for request, labels in zip(batch, sets, strict=True):
            if not request.answer.cancelled():
                request.answer.set_result(labels)

    def predict(self, batch: list[Waiting]) -> list[list[int]]:
        """Return the labels of each input, in order; this runs in a thread."""
        found = batch[0].calibration.classifier.predict(np.stack([one.x for one in batch]))
        if self.audit is not None:
            write_audit(self.audit, batch, found.seed, found.ids.tolist())
        return [np.flatnonzero(row).tolist() for row in found.sets]


def write_audit(path: Path, batch: list[Waiting], seed: int, ids: list[int]) -> None:
    """Add a line for each answer, which only the owner may read: it tells the noise.

    The seed is text, for many readers of JSON keep 53 bits of a number.
    """
    lines = [
        json.dumps(
            {
                "id": request.id,
                "calibration": request.calibration.digest,
                "seed": str(seed),
                "input": one,
            }
        )
        for request, one in zip(batch, ids, strict=True)
    ]
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with os.fdopen(os.open(path, flags, 0o600), "a") as stream:
        stream.write("".join(f"{line}\n" for line in lines))


def create_app(
    path: str | Path,
    model: Any,
    *,
    audit: str | Path | None = None,
    max_batch: int = 32,
    wait: float = 0.005,
) -> FastAPI:
    """Return the app for a file of `RobustClassifier.save` and its model."""
    log = None if audit is None else Path(audit)
    service = Service(Path(path), model, log, max_batch, wait)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(service.run())
        yield
        task.cancel()

    app = FastAPI(lifespan=lifespan)
    app.state.service = service

    @app.post("/predict")
    async def predict(request: Request) -> Answer:
        try:
            return await service.ask(request.x)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None

    @app.post("/rotate")
    async def rotate() -> dict[str, str]:
        try:
            return {"calibration": await asyncio.to_thread(service.rotate)}
        except (OSError, ValueError) as error:  # the calibration before goes on
            raise HTTPException(409, str(error)) from None

    return app
