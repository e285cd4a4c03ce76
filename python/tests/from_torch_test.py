#!/usr/bin/env python3
"""from_torch of networks as torchvision's and of transformers: parameters exactly, flops as PyTorch counts them."""
import os
import sys
import unittest

import pipelab
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import torch_networks  # noqa: E402

STEP = {"cluster": "dgx-a100", "dtype": "fp32"}
TORCHVISION = ("resnet18 alexnet mobilenet_v2 vgg11 squeezenet1_0 vit_b_16 efficientnet_b0 convnext_tiny swin_t "
               "shufflenet_v2_x1_0 mnasnet0_5 densenet121").split()


class FromTorch(unittest.TestCase):

    def Compare(self, name, module, inputs):
        model = pipelab.from_torch(module, inputs, name)
        with FlopCounterMode(display=False) as counter:
            module(*inputs)
        flops = counter.get_total_flops() / inputs[0].shape[0]
        print(f"{name:18} {len(model.layers):6} {model.parameters:10} {model.flops:12.0f} {model.flops / flops:14.6f}")
        self.assertEqual(model.parameters, sum(p.numel() for p in module.parameters()))
        self.assertLess(abs(model.flops / flops - 1), 0.01)
        run = pipelab.simulate("1f1b:P=2,b=2,M=4", model=model, **STEP)
        self.assertGreater(run.step_ms, 0)

    def test_parameters_and_flops(self):
        networks = torch_networks.Networks()
        self.assertGreaterEqual(len(networks), 10)
        print(f"{'network':18} {'layers':>6} {'parameters':>10} {'flops':>12} {'of the counter':>14}")
        for name, (module, inputs) in networks.items():
            with self.subTest(name):
                self.Compare(name, module, inputs if isinstance(inputs, tuple) else (inputs,))

    def test_torchvision(self):
        """Its own networks, where it is installed, without allocating them."""
        try:
            from torchvision import models
        except ImportError:
            self.skipTest("no torchvision")
        for name in TORCHVISION:
            with self.subTest(name), torch.device("meta"):
                module, images = getattr(models, name)(weights=None).eval(), torch.randn(2, 3, 224, 224)
                self.Compare(name, module, (images,))

    def test_batch_does_not_count(self):
        for name in ("gpt", "vit", "resnet"):
            small, large = (
                pipelab.from_torch(*torch_networks.Networks(batch)[name], name) for batch in (2, 6))
            self.assertEqual(small.data, large.data)

    def test_which_layers_split(self):
        networks = torch_networks.Networks()
        gpt = pipelab.from_torch(*networks["gpt"], "gpt")
        block = [name for name in gpt.split_layers if name.startswith("blocks.0.")]
        for name in ("attention.qkv", "attention.out", "mlp.0", "mlp.1", "mlp.2"):
            self.assertIn(f"blocks.0.{name}", block)
        whole = {layer["name"]: layer for layer in gpt.layers}
        self.assertEqual(whole["blocks.0.norm1"]["tensor_parallel"], {"whole": "all"})
        self.assertEqual(whole["blocks.0.attention.qkv"]["tensor_parallel"]["divides"],
                         {"heads": 4})
        # 16 tokens of 32 numbers of 4 bytes are summed behind each half block.
        for name in ("attention.out", "mlp.2"):
            self.assertEqual(whole[f"blocks.0.{name}"]["tensor_parallel"]["forward_sum"], "2048 B")
        two = pipelab.simulate("1f1b:P=2,T=2,M=4", model=gpt, **STEP)
        one = pipelab.simulate("1f1b:P=2,M=4", model=gpt, **STEP)
        self.assertLess(two.figures["devices"][0]["peak_state_bytes"],
                        one.figures["devices"][0]["peak_state_bytes"])
        with self.assertRaisesRegex(pipelab.Error, "T must be 1|tensor"):
            pipelab.simulate("1f1b:P=2,T=2,M=4",
                             model=pipelab.from_torch(*networks["vgg"], "vgg"),
                             **STEP)
        # Grouped queries: a device has whole groups, and SwiGLU has two products by columns.
        llama = pipelab.from_torch(*networks["llama"], "llama")
        rows = {layer["name"]: layer.get("tensor_parallel", {}) for layer in llama.layers}
        self.assertEqual(rows["0.q"]["divides"], {"heads": 2})
        for name in ("0.gate", "0.up"):
            self.assertEqual(rows[name]["divides"], {"columns": 88})
        self.assertEqual(rows["0.down"]["divides"], {"rows": 88})

    def test_file(self):
        model = pipelab.from_torch(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
                                   torch.randn(3, 4), "net")
        model.save("net.json")
        self.assertEqual(pipelab.Model.load("net.json").data, model.data)
        self.assertEqual([layer["name"] for layer in model.layers], ["0", "1", "2"])
        self.assertEqual((model.parameters, model.flops),
                         (4 * 8 + 8 + 8 * 2 + 2, 2 * (4 * 8 + 8 * 2)))
        self.assertEqual(model.layers[0]["output"], "32 B")
        self.assertEqual(model.layers[1]["kept"], "32 B")

    def test_wrong_uses(self):
        class Branches(nn.Module):

            def forward(self, x):
                return x if x.sum() > 0 else -x

        for call, line in (
            (lambda: pipelab.from_torch(nn.ReLU, torch.ones(1)),
             "from_torch: type: must be a torch.nn.Module"),
            (lambda: pipelab.from_torch(nn.ReLU(), 3), "from_torch: inputs must be a tensor"),
            (lambda: pipelab.from_torch(nn.ReLU(), ()), "from_torch: inputs must be a tensor"),
            (lambda: pipelab.from_torch(nn.Identity(), torch.ones(1)),
             "from_torch: identity: the module computes nothing"),
            (lambda: pipelab.from_torch(nn.Linear(3, 3), torch.ones(1, 4)), "from_torch: torch.export cannot read"),
            (lambda: pipelab.from_torch(Branches(), torch.ones(4)), "from_torch: torch.export cannot read"),
            (lambda: pipelab.from_torch(nn.LSTM(4, 4), torch.ones(2, 3, 4)), "from_torch: aten.lstm"),
        ):
            with self.assertRaises(pipelab.Error) as raised:
                call()
            self.assertTrue(str(raised.exception).startswith(line), raised.exception)
            self.assertNotIn("\n", str(raised.exception))


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
