"""Event files are read back as TensorBoard reads them."""

import struct

from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event, SessionLog

from jaxsearch.learn.tensorboard import Events


def records(path):
    """The records of a file; their checksums are looked at."""
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        body = data[12 : 12 + length]
        for part, start in ((data[:8], 8), (body, 12 + length)):
            crc = crc32c(part)
            masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
            assert struct.unpack("<I", data[start : start + 4]) == (masked,)
        yield Event.FromString(body)
        data = data[16 + length :]


def scalars(folder):
    """By name and step; a later start drops the steps from its own on."""
    found = {}
    for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
        for event in records(path):
            if event.session_log.status == SessionLog.START:
                found = {k: v for k, v in found.items() if k[1] < event.step}
            for value in event.summary.value:
                assert (value.tag, event.step) not in found
                found[value.tag, event.step] = value.simple_value
    return found


def test_resumed_run_doubles_no_event(tmp_path, monkeypatch):
    folder = tmp_path / "tensorboard"
    for started_after, value in ((0, 1.0), (2, 2.0)):
        monkeypatch.setattr("os.getpid", lambda pid=started_after: pid)
        with Events(folder) as events:
            events.start(started_after)
            for iteration in range(started_after + 1, 5):
                events.add({"iteration": iteration, "loss": None, "value": value})
    values = [1.0, 1.0, 2.0, 2.0]
    assert scalars(folder) == {("value", n): v for n, v in enumerate(values, 1)}
    assert len(list(folder.iterdir())) == 2


def test_nothing_is_written_where_it_was_not_asked_for(tmp_path):
    with Events(tmp_path / "tensorboard") as events:
        events.add({"iteration": 1})
    assert not list(tmp_path.iterdir())
