"""An LSTM tagger, a GRU with packed sequences, and a Transformer that translates."""

import math

import tritensor as torch
import tritensor.nn as nn
import tritensor.nn.functional as F
import tritensor.optim as optim
from tritensor import Tensor


class LSTMTagger(nn.Module):
    def __init__(self, embedding_dim, hidden_dim, vocab_size, tagset_size):
        super(LSTMTagger, self).__init__()
        self.hidden_dim = hidden_dim
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, num_layers=2, batch_first=True, bidirectional=True)
        self.hidden2tag = nn.Linear(2 * hidden_dim, tagset_size)

    def init_hidden(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(4, batch, self.hidden_dim), weight.new_zeros(4, batch, self.hidden_dim)

    def forward(self, sentence):
        embeds = self.word_embeddings(sentence)
        lstm_out, (h, c) = self.lstm(embeds, self.init_hidden(sentence.size(0)))
        return F.log_softmax(self.hidden2tag(lstm_out), dim=-1), h[-1]


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 50):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.pe[: x.size(0)])


torch.manual_seed(1)
tagger = LSTMTagger(6, 6, 10, 3)
loss_function = nn.NLLLoss()
optimizer = optim.SGD(tagger.parameters(), lr=0.1)
sentences, tags = torch.randint(10, (4, 7)), torch.randint(3, (4, 7))
for epoch in range(2):
    tagger.zero_grad()
    tag_scores, last = tagger(sentences)
    loss = loss_function(tag_scores.transpose(1, 2), tags)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.3f}", last.shape)

lengths = torch.tensor([5, 3, 2])
padded = torch.randn(3, 5, 4)
packed = nn.utils.rnn.pack_padded_sequence(padded, lengths, batch_first=True)
gru = nn.GRU(4, 6, batch_first=True)
output, hidden = gru(packed)
unpacked, sizes = nn.utils.rnn.pad_packed_sequence(output, batch_first=True)
print(unpacked.shape, sizes.tolist(), hidden.shape)

transformer = nn.Transformer(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16)
encoding = PositionalEncoding(8)
source, target = encoding(torch.randn(6, 2, 8)), encoding(torch.randn(4, 2, 8))
mask = nn.Transformer.generate_square_subsequent_mask(4)
print(transformer(source, target, tgt_mask=mask).shape)
attention = nn.MultiheadAttention(8, 2, batch_first=True)
attended, weights = attention(padded.repeat(1, 1, 2), padded.repeat(1, 1, 2), padded.repeat(1, 1, 2))
print(attended.shape, weights.sum(-1).mean().item())
layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True, norm_first=True, activation="gelu")
encoder = nn.TransformerEncoder(layer, num_layers=2)
padding = torch.arange(5)[None, :] >= lengths[:, None]
print(encoder(torch.randn(3, 5, 8), src_key_padding_mask=padding).shape)
