"""A whole training program on both: data, net, loss, scaler, clipping, optimizer, schedule, files. The losses agree."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402


def net(m):
    return m.nn.Sequential(
        m.nn.Conv2d(1, 4, 3, padding=1),
        m.nn.BatchNorm2d(4),
        m.nn.ReLU(),
        m.nn.MaxPool2d(2),
        m.nn.Dropout(0.1),
        m.nn.Flatten(),
        m.nn.Linear(144, 16),
        m.nn.GELU(),
        m.nn.LayerNorm(16),
        m.nn.Linear(16, 2),
    )


def training(m, path, workers):
    m.manual_seed(0)
    data = m.utils.data
    x = m.randn(256, 1, 12, 12)
    y = (x.mean((1, 2, 3)) > 0).long()
    train, held_out = data.random_split(data.TensorDataset(x, y), [200, 56])
    model = net(m)
    optimizer = m.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = m.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=20)
    loss_of = m.nn.CrossEntropyLoss(label_smoothing=0.1)
    scaler = m.amp.GradScaler("cpu", init_scale=256.0)
    losses = []
    for _ in range(2):
        for xs, ys in data.DataLoader(train, batch_size=20, shuffle=True, num_workers=workers):
            optimizer.zero_grad()
            loss = loss_of(model(xs), ys)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            m.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            losses.append(loss.item())
    m.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    model.eval()
    with m.no_grad():
        return losses, [loss_of(model(a), b).item() for a, b in data.DataLoader(held_out, 8)]


@pytest.mark.parametrize("workers", [0, 2])
def test_losses(workers, tmp_path):
    ours, theirs = tmp_path / "ours.pt", tmp_path / "theirs.pt"
    got, want = training(prong, ours, workers), training(torch, theirs, workers)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-3, atol=1e-3)
    # Each goes on from the other's file.
    for m, path in ((prong, theirs), (torch, ours)):
        model = net(m)
        optimizer = m.optim.AdamW(model.parameters())
        state = m.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        assert optimizer.param_groups[0]["betas"][1] == 0.999
        model(m.ones(2, 1, 12, 12)).sum().backward()
        optimizer.step()
