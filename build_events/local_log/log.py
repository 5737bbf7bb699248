"""The local log: both ports over one folder of append-only segments. No server, no daemon."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from build_events import codec
from build_events.envelope import Recorded, StreamHeader
from build_events.errors import LogCorruptError, LogUnavailableError
from build_events.events import StreamClosed
from build_events.local_log import identity
from build_events.local_log.layout import place_of
from build_events.local_log.lines import frame
from build_events.local_log.listing import Listing
from build_events.local_log.open_stream import OpenStream
from build_events.local_log.segment_reader import chunks, end_of
from build_events.local_log.storage import readable
from build_events.log import Chunk, Positions

SEGMENT_BYTES = 64 << 20  # a segment is closed once it is this long; the last append may go beyond


class LocalLog:
    """``EventWriter`` and ``EventReader`` over a folder; any number of processes may use it at once.

    Streams may be written by several threads, each stream by one. Positions are byte offsets by
    segment. A folder that does not exist reads as an empty log.
    """

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self._segment_bytes = segment_bytes
        self._listing = Listing(os.fspath(folder))
        self._streams: dict[str, OpenStream] = {}

    @classmethod
    def create(cls, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> Self:
        """Return the log in ``folder``, made now unless it is there. Safe from several processes at once.

        Raises:
            LogUnavailableError: the folder cannot be made.
            LogCorruptError: there are streams, but the log's identity is gone.
        """
        try:
            identity.create(folder)
        except OSError as error:
            raise LogUnavailableError(
                f"{error.filename or folder}: {error.strerror}. Give a folder that can be written, or free its disk."
            ) from error
        return cls(folder, segment_bytes=segment_bytes)

    def append(self, records: Sequence[Recorded]) -> None:
        """Return once all are on disk (fdatasync); each stream's records are written together, in order.

        The first record of a stream takes its lock, ``StreamClosed`` gives it up. To repeat a failed
        append is safe: what was stored twice is a duplicate by stream and sequence.

        Raises:
            LogUnavailableError: not all were stored; what was is undefined until read.
            EventTooLargeError: an event is too long; of its stream nothing was stored.
        """
        streams: dict[str, list[Recorded]] = {}
        for record in records:
            streams.setdefault(record.stream.stream_id, []).append(record)
        for stream_id, of_stream in streams.items():
            stream = self._stream(of_stream[0].stream)
            stream.append(b"".join([frame(codec.encode_for_log(record)) for record in of_stream]))
            if any(isinstance(record.event, StreamClosed) for record in of_stream):
                del self._streams[stream_id]
                stream.finish()

    def close(self) -> None:
        """Give up the streams that are still open: whoever looks from now on finds them lost."""
        while self._streams:
            _, stream = self._streams.popitem()
            stream.abandon()

    def identity(self) -> str:
        """Return the log's identity.

        Raises:
            LogCorruptError: the folder has none, or holds something else in its place.
        """
        return identity.read(self.folder)

    def read(self, after: Positions, *, max_bytes: int) -> Iterator[Chunk]:
        """Yield what stands after these positions, segment by segment, a stream's segments in order.

        The unfinished last line of a stream is left while its writer lives, and is a ``torn_tail``
        reject once it is gone.

        Raises:
            LogCorruptError: the folder cannot be read.
        """
        with readable(self.folder):
            for segment in self._listing.segments():
                start = after.get(segment.source, 0)
                if segment.size is None or start < segment.size:
                    yield from chunks(segment, start, max_bytes=max_bytes)

    def ends(self) -> dict[str, int]:
        """Return where each segment ends for a reader now.

        Raises:
            LogCorruptError: the folder cannot be read.
        """
        with readable(self.folder):
            return {segment.source: end for segment in self._listing.segments() if (end := end_of(segment))}

    def _stream(self, header: StreamHeader) -> OpenStream:
        stream = self._streams.get(header.stream_id)
        if stream is None:
            try:
                self.identity()
            except LogCorruptError as error:
                raise LogUnavailableError(str(error)) from error
            stream = OpenStream(place_of(self.folder, header), segment_bytes=self._segment_bytes)
            self._streams[header.stream_id] = stream
        return stream
