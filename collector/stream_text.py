"""What all events of a stream have in common, as ``build_events.codec.encode`` writes it."""

from typing import NamedTuple, Self

from pydantic_core import to_json

from build_events.envelope import CONTRACT_VERSION, StreamHeader


class StreamText(NamedTuple):
    """The pieces of text between an event's own values; a piece ends where the next value begins."""

    before_id_sequence: str
    before_type: str
    before_sequence: str
    after_sequence: str  # up to where the span's id, if there is one, has its name
    before_data: str

    @classmethod
    def of(cls, header: StreamHeader) -> Self:
        """Return the pieces of a stream."""
        stream_id = _escaped(header.stream_id)
        about = [("runid", header.run_id), ("route", header.route), ("traceid", header.trace_id)]
        return cls(
            before_id_sequence=f'{{"specversion":"1.0","id":"{stream_id}/',
            before_type=f'","source":"{_escaped(header.source)}","type":"',
            before_sequence=f'","subject":"{_escaped(header.subject)}","datacontenttype":"application/json",'
            f'"streamid":"{stream_id}","streamrole":"{header.role}","sequence":"',
            after_sequence="".join(f'","{name}":"{_escaped(value)}' for name, value in about if value is not None),
            before_data=f'","bootid":"{_escaped(header.boot_id)}","contract":{CONTRACT_VERSION},"data":{{',
        )


NO_STREAM = StreamText(*[""] * len(StreamText._fields))  # with it, no text is that of an event


def _escaped(text: str) -> str:
    return to_json(text)[1:-1].decode()
