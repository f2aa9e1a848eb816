import torch
import torchdynamo

# 定义一个简单的模型
class MyModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(10, 10)

    def forward(self, x):
        return torch.relu(self.linear(x))

# 定义损失函数
loss_fn = torch.nn.MSELoss()

# 创建模型和优化器
model = MyModel()
optimizer = torch.optim.Adam(model.parameters())

# 训练步骤函数
def train_step(input, target):
    optimizer.zero_grad()
    output = model(input)
    loss = loss_fn(output, target)
    loss.backward()
    optimizer.step()
    return loss.item()

# 使用 TorchDynamo 优化训练步骤
optimized_train_step = torchdynamo.optimize(train_step)

# 模拟训练循环
for _ in range(100):
    inputs = torch.randn(32, 10)
    targets = torch.randn(32, 10)
    loss = optimized_train_step(inputs, targets)
    print(f"Loss: {loss:.4f}")
