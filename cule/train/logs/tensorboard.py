"""TensorBoard events, each appended to the file completely or not at all.

torch's SummaryWriter writes in a thread, which on a full disk prints a traceback and leaves half an
event in the file.
"""

from __future__ import annotations

import io
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from cule.disk.files import append


class Board:
    """Writes a file of events.

    Args:
        folder: the folder of the file, which is created if it is missing.
        begin: TensorBoard then ignores the events of this and later steps in earlier files; 0: it
            ignores none.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, folder: Path, begin: int):
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self.path = folder / name
        self._append(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if begin:
            log = SessionLog(status=SessionLog.START)
            self._append(Event(wall_time=time.time(), step=begin, session_log=log))

    def _append(self, event: Event) -> None:
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        append(self.path, record.getvalue())

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes some numbers.

        Args:
            step: the step that they belong to.
            values: the numbers, by their tags.

        Raises:
            OSError: they cannot be written; the file is as it was.
        """
        of_tags = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._append(Event(wall_time=time.time(), step=step, summary=Summary(value=of_tags)))

    def close(self) -> None:
        """Does nothing: each event is in the file."""
