"""A classifier of points, trained with DataLoader, a scheduler and early stopping."""

import tritensor as torch
import tritensor.nn.functional as F
from tritensor import nn, optim
from tritensor.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
x = torch.randn(256, 2)
y = (x[:, 0] * x[:, 1] > 0).long()
train_set, valid_set = random_split(TensorDataset(x, y), [200, 56])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=64)


class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.fc1 = nn.Linear(2, hidden)
        self.fc2 = nn.Linear(hidden, 2)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        return self.fc2(self.dropout(x))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
best, patience = float("inf"), 3

for epoch in range(3):
    model.train()
    running = 0.0
    for inputs, labels in train_loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item() * inputs.size(0)
    scheduler.step()

    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in valid_loader:
            predicted = model(inputs.to(device)).argmax(dim=1)
            correct += (predicted == labels.to(device)).sum().item()
    accuracy = correct / len(valid_set)
    lr = scheduler.get_last_lr()[0]
    print(f"epoch {epoch}: loss {running / len(train_set):.3f}, accuracy {accuracy:.2f}, lr {lr:.3g}")
    if 1 - accuracy < best:
        best = 1 - accuracy
    else:
        patience -= 1
        if patience == 0:
            break

print(sum(p.numel() for p in model.parameters() if p.requires_grad), "parameters")
