"""Small networks of the kinds that torchvision and language models have, for tests of from_torch.

  for name, (module, inputs) in Networks().items(): ...
"""
import torch
from torch import nn
from torch.nn import functional as F


def Conv(c_in, c_out, kernel=3, stride=1, groups=1, activation=nn.ReLU):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(c_out), activation())


class AlexNet(nn.Module):

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 11, 4, 2), nn.ReLU(inplace=True),
                                      nn.MaxPool2d(3, 2), nn.Conv2d(16, 32, 5, padding=2),
                                      nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
                                      nn.Conv2d(32, 24, 3, padding=1), nn.ReLU(inplace=True))
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.classifier = nn.Sequential(nn.Dropout(), nn.Linear(96, 64), nn.ReLU(),
                                        nn.Linear(64, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.pool(self.features(x)), 1))


class Vgg(nn.Module):

    def __init__(self):
        super().__init__()
        layers, c = [], 3
        for width in (8, 8, "M", 16, 16, "M", 32, "M"):
            layers += [nn.MaxPool2d(2)] if width == "M" else [Conv(c, width)]
            c = c if width == "M" else width
        self.features, self.head = nn.Sequential(*layers), nn.Linear(32 * 16, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Bottleneck(nn.Module):

    def __init__(self, c_in, width, stride):
        super().__init__()
        self.body = nn.Sequential(Conv(c_in, width, 1), Conv(width, width, 3, stride),
                                  nn.Conv2d(width, 4 * width, 1, bias=False),
                                  nn.BatchNorm2d(4 * width))
        self.skip = nn.Conv2d(c_in, 4 * width, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ResNet(nn.Module):

    def __init__(self):
        super().__init__()
        self.stem = Conv(3, 16, 7, 2)
        self.blocks = nn.Sequential(Bottleneck(16, 8, 1), Bottleneck(32, 16, 2),
                                    Bottleneck(64, 16, 1))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class InvertedResidual(nn.Module):

    def __init__(self, c, stride):
        super().__init__()
        self.body = nn.Sequential(
            Conv(c, 4 * c, 1, activation=nn.ReLU6), Conv(4 * c, 4 * c, 3, stride, 4 * c, nn.ReLU6),
            nn.Conv2d(4 * c, c, 1, bias=False), nn.BatchNorm2d(c))
        self.adds = stride == 1

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class SqueezeExcite(nn.Module):

    def __init__(self, c):
        super().__init__()
        self.down, self.up = nn.Conv2d(c, c // 4, 1), nn.Conv2d(c // 4, c, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.silu(self.down(x.mean((2, 3), keepdim=True)))))


class DenseLayer(nn.Module):

    def __init__(self, c, growth):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(c), nn.Conv2d(c, growth, 3, padding=1)

    def forward(self, x):
        return torch.cat([x, self.conv(F.relu(self.norm(x)))], 1)


class UNet(nn.Module):

    def __init__(self):
        super().__init__()
        self.a, self.b = Conv(3, 8), Conv(8, 16, stride=2)
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = self.a(x)
        return self.out(torch.cat([a, self.up(self.b(a))], 1))


class Attention(nn.Module):

    def __init__(self, width, heads, causal):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):

    def __init__(self, width, heads, causal=True):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, causal)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """With tied embeddings."""

    def __init__(self, words=101, width=32, tokens=16):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(3)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        places = self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(self.words(ids) + places)))


class LlamaBlock(nn.Module):
    """Grouped queries and SwiGLU."""

    def __init__(self, width=32, heads=4, groups=2):
        super().__init__()
        d = width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k = nn.Linear(width, heads * d, bias=False), nn.Linear(width, groups * d, bias=False)
        self.v, self.o = nn.Linear(width, groups * d, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 88, bias=False), nn.Linear(width, 88, bias=False)
        self.down = nn.Linear(88, width, bias=False)
        self.d = d

    def forward(self, x):
        b, t, c = x.shape
        h = self.norm1(x)
        q, k, v = (m(h).view(b, t, -1, self.d).transpose(1, 2) for m in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, c))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Vit(nn.Module):

    def __init__(self, width=32):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, 17, width))
        self.blocks = nn.Sequential(Block(width, 4, False), Block(width, 4, False))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.blocks(x)[:, 0])


class Mixer(nn.Module):

    def __init__(self, tokens=16, width=24):
        super().__init__()
        self.across = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.along = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.along(self.norm2(x))


def Networks(batch=2):
    """Name -> (module, inputs), in the order of their families."""
    torch.manual_seed(1)
    image, ids = torch.randn(batch, 3, 32, 32), torch.randint(0, 100, (batch, 16))
    rows = torch.randn(batch, 16, 32)
    return {
        "alexnet": (AlexNet(), torch.randn(batch, 3, 96, 96)),
        "vgg": (Vgg(), image),
        "resnet": (ResNet(), image),
        "mobilenet": (nn.Sequential(Conv(3, 8, stride=2), InvertedResidual(8, 1), InvertedResidual(8, 2)), image),
        "efficientnet": (nn.Sequential(Conv(3, 16, stride=2, activation=nn.SiLU), SqueezeExcite(16)), image),
        "densenet": (nn.Sequential(Conv(3, 8), DenseLayer(8, 4), DenseLayer(12, 4), DenseLayer(16, 4)), image),
        "unet": (UNet(), image),
        "gpt": (Gpt(), ids),
        "llama": (nn.Sequential(LlamaBlock(), LlamaBlock()), rows),
        "vit": (Vit(), image),
        "mixer": (Mixer(), torch.randn(batch, 16, 24)),
        "encoder": (nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2,
                                          enable_nested_tensor=False), rows),
        "encoder_decoder": (nn.Transformer(32, 4, 1, 1, 64, batch_first=True), (rows, torch.randn(batch, 8, 32))),
    }
