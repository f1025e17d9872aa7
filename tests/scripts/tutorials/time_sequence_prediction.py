"""Sine waves: two LSTM cells in float64, trained by LBFGS on the whole set, then left to go on by themselves."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Sequence(nn.Module):
    def __init__(self, width):
        super(Sequence, self).__init__()
        self.width = width
        self.lstm1 = nn.LSTMCell(1, width)
        self.lstm2 = nn.LSTMCell(width, width)
        self.linear = nn.Linear(width, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), self.width, dtype=torch.double, device=input.device)
        c_t = torch.zeros(input.size(0), self.width, dtype=torch.double, device=input.device)
        h_t2 = torch.zeros(input.size(0), self.width, dtype=torch.double, device=input.device)
        c_t2 = torch.zeros(input.size(0), self.width, dtype=torch.double, device=input.device)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for i in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        outputs = torch.cat(outputs, dim=1)
        return outputs


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--waves", type=int, default=20)
    parser.add_argument("--width", type=int, default=51)
    parser.add_argument("--max_iter", type=int, default=20)
    opt = parser.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    T = 20
    x = np.empty((opt.waves, opt.length), "int64")
    x[:] = np.array(range(opt.length)) + np.random.randint(-4 * T, 4 * T, opt.waves).reshape(opt.waves, 1)
    data = np.sin(x / 1.0 / T).astype("float64")
    torch.save(data, open("traindata.pt", "wb"))
    data = torch.load("traindata.pt", weights_only=False)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print("device", device)
    input = torch.from_numpy(data[3:, :-1]).to(device)
    target = torch.from_numpy(data[3:, 1:]).to(device)
    test_input = torch.from_numpy(data[:3, :-1]).to(device)
    test_target = torch.from_numpy(data[:3, 1:]).to(device)
    seq = Sequence(opt.width)
    seq.double()
    seq.to(device)
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=opt.max_iter)
    for i in range(opt.steps):
        print("STEP: ", i)

        def closure():
            optimizer.zero_grad()
            out = seq(input)
            loss = criterion(out, target)
            print("loss:", loss.item())
            loss.backward()
            return loss

        optimizer.step(closure)
        with torch.no_grad():
            future = 5
            pred = seq(test_input, future=future)
            loss = criterion(pred[:, :-future], test_target)
            print("test loss:", loss.item())
            y = pred.detach().cpu().numpy()
    print("predicted", y.shape, y.dtype)
