"""Plans keep no object of a program's alive: what plain Python would drop is dropped, with what the plan keeps."""

import contextlib
import gc
import io
import sys
import threading
import weakref

import prong as torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.inner(x).sum()


def test_a_module_that_was_an_argument_dies_with_its_weights():
    @torch.compile
    def run(net, x):
        return net(x)

    gc.disable()
    try:
        for _ in range(12):
            net = Net()
            before = sys.getrefcount(net)
            for _ in range(3):
                run(net, torch.ones(2, 4))
            assert (sys.getrefcount(net), net.calls) == (before, 3)
            parts = [weakref.ref(o) for o in (net, net.inner, net.inner[0].weight)]
            assert run._counters()["plans"] == 1
            del net
            assert [part() for part in parts] == [None] * 3
            assert run._counters()["plans"] == 0
    finally:
        gc.enable()
    assert run._counters()["replays"] == 24  # each of them got a plan of its own


class Trainer:
    def __init__(self):
        self.net = Net()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2)

    @torch.compile
    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.net(x)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()


def test_an_object_with_a_compiled_method_dies_with_its_optimizer():
    for _ in range(3):
        trainer = Trainer()
        for _ in range(5):
            trainer.step(torch.ones(2, 4))
        parts = [weakref.ref(o) for o in (trainer, trainer.optimizer, trainer.net.inner[0].weight)]
        del trainer
        gc.collect()
        assert [part() for part in parts] == [None] * 3
    counters = Trainer.step._counters()
    assert counters["plans"] == 0 and counters["replays"] >= 3, counters


def test_closures_die_with_what_they_hold():
    @torch.compile
    def apply(function, x):
        return function(x)

    held = []
    for i in range(20):
        big = torch.ones(100) * i
        held.append(weakref.ref(big))
        assert apply(lambda x, big=big: x + big.sum(), torch.ones(1)).item() == 1 + 100 * i
    del big
    assert all(ref() is None for ref in held)


def test_finalizers_run_when_they_would():
    ended = []

    class Session:
        def __init__(self, name):
            self.name = name

        def __del__(self):
            ended.append(self.name)

    @torch.compile
    def use(session, x):
        return x * 2 if session.name else x

    for i in range(12):
        use(Session(i + 1), torch.ones(2))
        assert ended == list(range(1, i + 2))


def test_several_objects_of_a_plan_die_at_once():
    class Link:
        def __init__(self):
            self.to = None

        def scale(self, x):
            return x * 3

    @torch.compile
    def run(a, b, c, x):
        return a.scale(b.scale(c.scale(x)))

    for _ in range(4):
        links = [Link() for _ in range(3)]
        for i in range(3):
            links[i].to = links[(i + 1) % 3]
        for _ in range(3):
            assert run(*links, torch.ones(1)).item() == 27
        refs = [weakref.ref(link) for link in links]
        del links
        gc.collect()
        assert [ref() for ref in refs] == [None] * 3
        assert run._counters()["plans"] == 0


def test_an_object_that_a_call_replaces():
    class State:
        def __init__(self, value):
            self.value = value

    class Owner:
        def __init__(self):
            self.state = State(1.0)

        def advance(self, x):
            self.state = State(self.state.value * 2)
            return x * self.state.value

    def both(function, owner):
        seen = []
        for i in range(12):
            old = weakref.ref(owner.state)
            seen.append((function(owner, torch.ones(2) * i).tolist(), old() is None))
        return seen

    assert both(torch.compile(Owner.advance), Owner()) == both(Owner.advance, Owner())


def test_an_object_dies_while_its_plan_runs():
    """The last reference goes in a call that a step of the plan makes."""
    nets = {"net": Net()}

    @torch.compile
    def run(x):
        y = nets["net"](x)
        print("between", end="")
        return y * 2

    class Dropping(io.StringIO):
        def write(self, text):
            nets["net"] = Net()
            return super().write(text)

    for _ in range(3):
        run(torch.ones(2, 4))
    old = weakref.ref(nets["net"])
    with contextlib.redirect_stdout(Dropping()):
        expected = old()(torch.ones(2, 4)) * 2
        assert torch.equal(run(torch.ones(2, 4)), expected)
    gc.collect()
    assert old() is None


def test_guards_are_told_of_living_plans_only():
    @torch.compile
    def run(net, x):
        return net(x)

    kept = [Net() for _ in range(3)]
    for net in kept:
        run(net, torch.ones(2, 4))
    del kept[1], net
    assert len(run._guards()) == run._counters()["plans"] == 2


def test_threads_drop_and_call():
    @torch.compile
    def run(net, x):
        return net(x)

    wrong = []

    def work():
        for i in range(60):
            net = Net()
            x = torch.ones(2, 4) * i
            with torch.no_grad():
                plain = net.inner(x).sum()
                for _ in range(3):
                    if not torch.equal(run(net, x), plain):
                        wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and run._counters()["plans"] == 0
