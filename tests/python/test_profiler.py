"""Profiles: events, sums, tables, traces as often as asked, schedules."""

import json

import prong as torch
import pytest
from prong.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def work():
    x = torch.ones(64, 64)
    return (x @ x + 1).tanh()


def test_events_and_sums(tmp_path):
    with torch.autograd.profiler.profile() as prof:
        with record_function("outer"):
            work()
            work()
    names = [event.name for event in prof.function_events]
    assert names[0] == "outer" and names.count("aten::tanh") == 2
    inner = [e for e in prof.function_events if e.name == "aten::tanh"]
    assert all(e.cpu_parent.name == "outer" and e.cpu_time_total >= 0 for e in inner)
    sums = {a.key: a for a in prof.key_averages()}
    assert (
        sums["aten::tanh"].count == 2
        and sums["outer"].cpu_time_total >= sums["outer"].self_cpu_time_total > 0
    )
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=3)
    assert "aten::matmul" in text and "Self CPU" in text
    assert str(prof) and prof.total_average().count == len(names)
    with pytest.raises(ValueError):
        prof.key_averages().table(sort_by="beauty")


def test_traces_as_often_as_asked(tmp_path):
    with torch.autograd.profiler.profile() as prof:
        work()
    for name in ("a.json", "b.json", "b.json"):
        prof.export_chrome_trace(tmp_path / name)
    events = json.loads((tmp_path / "b.json").read_text())["traceEvents"]
    span = next(e for e in events if e.get("name") == "aten::tanh")
    assert span["ph"] == "X" and {"ts", "dur", "pid", "tid", "cat"} <= span.keys()
    prof.export_timeline(tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text()
    assert "<html" in page.lower() and "aten::tanh" in page and 'src="http' not in page
    with pytest.raises(OSError):
        prof.export_chrome_trace(tmp_path / "no" / "such" / "folder.json")


def test_unused_and_disabled_profiles():
    with pytest.raises(RuntimeError, match="didn't finish"):
        torch.autograd.profiler.profile().key_averages()
    with torch.autograd.profiler.profile(enabled=False) as prof:
        work()
    with pytest.raises(RuntimeError):
        prof.export_chrome_trace("x.json")


def test_one_at_a_time():
    with torch.autograd.profiler.profile():
        with pytest.raises(RuntimeError):
            torch.autograd.profiler.profile().__enter__()
    with torch.autograd.profiler.profile() as again:
        work()
    assert again.function_events


def test_record_function_decorates():
    @record_function("named")
    def f():
        return work()

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        f()
    assert [e.name for e in prof.events()][0] == "named"
    f()  # outside of a profile it costs nothing and records nothing
    with pytest.raises(TypeError):
        record_function(3)


def test_schedule():
    action = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    names = [action(i).name for i in range(10)]
    cycle = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
    assert names == ["NONE", *cycle, *cycle, "NONE"]
    assert ProfilerAction.RECORD.value == 2


def test_profile_follows_the_schedule(tmp_path):
    ready = []
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "log"))

    def on_ready(prof):
        ready.append((prof.step_num, len([e for e in prof.events() if e.name == "aten::tanh"])))
        handler(prof)

    with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=on_ready) as prof:
        for _ in range(8):
            work()
            prof.step()
    assert ready == [(4, 2), (8, 2)]
    assert len(list((tmp_path / "log").glob("*.pt.trace.json"))) == 2
