"""Small training programs, written once for PyTorch and Prong: each gives its losses. Run by test_losses.py."""


def seed_program(t, steps=100):
    """The program of the seed: one layer, relu, MSE, Adam, new random data each step."""

    class MyModel(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = t.nn.Linear(10, 10)

        def forward(self, x):
            return t.relu(self.linear(x))

    model, loss_fn = MyModel(), t.nn.MSELoss()
    optimizer = t.optim.Adam(model.parameters())
    losses = []
    for _ in range(steps):
        inputs, targets = t.randn(32, 10), t.randn(32, 10)
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def mlp(t, make, steps=100):
    """Two hidden layers, cross entropy."""
    nn = t.nn
    model = nn.Sequential(
        nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 5)
    )
    optimizer = make(t, model.parameters())
    x, y = t.randn(64, 20), t.randint(0, 5, (64,))
    return _train(model, optimizer, lambda: t.nn.functional.cross_entropy(model(x), y), steps)


def conv_net(t, make, steps=100):
    """Convolutions, batch norm, pooling, a linear head."""
    nn = t.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 4),
    )
    optimizer = make(t, model.parameters())
    x, y = t.randn(16, 1, 8, 8), t.randint(0, 4, (16,))
    return _train(model, optimizer, lambda: nn.CrossEntropyLoss()(model(x), y), steps)


def transformer(t, make, steps=100):
    """Embedding, one encoder layer, a head; next-token loss."""
    nn = t.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(12, 16)
            self.places = nn.Parameter(t.zeros(6, 16))
            self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
            self.norm = nn.LayerNorm(16)
            self.head = nn.Linear(16, 12)

        def forward(self, x):
            return self.head(self.norm(self.layer(self.tokens(x) + self.places)))

    model = Net()
    optimizer = make(t, model.parameters())
    data = t.randint(0, 12, (8, 7))
    x, y = data[:, :-1], data[:, 1:]

    def loss():
        return nn.functional.cross_entropy(model(x).reshape(-1, 12), y.reshape(-1))

    return _train(model, optimizer, loss, steps)


def _train(model, optimizer, loss_of, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


OPTIMIZERS = {
    "SGD": lambda t, p: t.optim.SGD(p, lr=0.02, momentum=0.9),
    "Adam": lambda t, p: t.optim.Adam(p, lr=2e-3),
    "AdamW": lambda t, p: t.optim.AdamW(p, lr=2e-3),
}
PROGRAMS = {"mlp": mlp, "conv_net": conv_net, "transformer": transformer}
CASES = {"seed": seed_program} | {
    f"{name} with {kind}": lambda t, p=program, m=make: p(t, m)
    for name, program in PROGRAMS.items()
    for kind, make in OPTIMIZERS.items()
}
