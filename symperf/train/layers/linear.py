"""Linear layers of a decoder as operations, split by columns or rows, with their gradients.

Tensor parallelism is Megatron's (arXiv 1909.08053): the first product of a block is split by columns, the second by
rows; with sequence parallelism (arXiv 2205.05198) an all-reduce becomes an all-gather and a reduce-scatter, and the
backward pass gathers the input of a column-split product once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...formulas.kernels import elementwise as ew
from ...formulas.language.symbols import activation_bytes
from ...operations.schedule import Op, Sequence, sequence
from ...operations.shapes import FLOPS_PER_ELEMENT
from .blocks import Blocks

if TYPE_CHECKING:
    from ...models.architecture import LayerKind
    from ...plans.structure import Structure


class Linears(Blocks):
    """The linear layers of one kind of layer.

    Args:
        structure: what gives them their form.
        kind: of the layers.
        root: the first part of every path.
    """

    def __init__(self, structure: Structure, kind: LayerKind, root: str) -> None:
        super().__init__(structure, kind)
        self.kind, self.root = kind, root

    def linear(self, path: str, phase: str, in_features: Any, out_features: Any, tokens: Any = None) -> Op:
        """The forward product of a linear layer over all tokens, or over `tokens`; its bias is fused."""
        rows = self.shapes.tokens if tokens is None else tokens
        return self.kernels.matmul(f"{path}/{phase}", rows, out_features, in_features)

    def column_backward(
        self,
        path: str,
        in_features: Any,
        out_features: Any,
        *,
        shared: bool = False,
        tokens: Any = None,
        message: Any = None,
    ) -> Sequence:
        """Gradients of a column-split layer: the sum of its input gradient runs beside the weight gradient.

        With sequence parallelism its input is gathered again beside the input-gradient product. Where attention and
        MLP share their input, both transfers happen once: `shared` leaves them to the other. Where the gradient of the
        weights is a later pass, its transfer is the gather, and the sum of the input gradient has nothing beside it.

        Args:
            path: of the layer.
            in_features: of the layer.
            out_features: on the device.
            shared: the transfers are another layer's.
            tokens: that the layer sees, if not all of its stack.
            message: bytes of the input, if it is not the residual stream.
        """
        rows = self.shapes.tokens if tokens is None else tokens
        input_gradient = self.input_gradient(path, in_features, out_features, rows)
        weight_gradient = self.kernels.weight_gradient(f"{path}/backward_weight", rows, in_features, out_features)
        again = None if shared else self.gather(f"{path}/gather/backward", message)
        reduction = None if shared else self.reduce(f"{path}/reduce/backward", message)
        if self.structure.splits:
            later = None if shared else self.gather(f"{path}/gather/backward_weight", message)
            return sequence(
                input_gradient,
                reduction,
                self.beside(weight_gradient, later),
                self.bias_gradient(path, rows, out_features),
            )
        return sequence(
            self.beside(input_gradient, again),
            self.beside(weight_gradient, reduction),
            self.bias_gradient(path, rows, out_features),
        )

    def row_backward(self, path: str, in_features: Any, out_features: Any) -> Sequence:
        """Gradients of a row-split layer; its bias is added to the sharded residual stream."""
        rows = self.shapes.tokens
        return sequence(
            self.input_gradient(path, in_features, out_features, rows),
            self.kernels.weight_gradient(f"{path}/backward_weight", rows, in_features, out_features),
            self.bias_gradient(path, self.shapes.stream_tokens, out_features),
        )

    def input_gradient(self, path: str, in_features: Any, out_features: Any, tokens: Any) -> Op:
        """The product of output gradient and weights."""
        return self.kernels.matmul(f"{path}/backward_input", tokens, in_features, out_features)

    def bias_gradient(self, path: str, tokens: Any, out_features: Any) -> Op | None:
        """The sum of the output gradient over tokens, where the layer has a bias."""
        architecture = self.architecture
        has_bias = {
            "attention/qkv": architecture.qkv_bias,
            "attention/output": architecture.attention_output_bias,
            "cross/query": architecture.qkv_bias,
            "cross/key_value": architecture.qkv_bias,
            "cross/output": architecture.attention_output_bias,
            "ssm/in": architecture.ssm_projection_bias,
            "ssm/output": architecture.ssm_projection_bias,
            "gated_lru/in": architecture.ssm_projection_bias,
            "gated_lru/output": architecture.ssm_projection_bias,
            "mlp/up": architecture.mlp_bias,
            "mlp/down": architecture.mlp_bias,
        }
        if not has_bias.get(path.removeprefix(f"{self.root}/"), False):
            return None
        if not architecture.key_bias and path.endswith(("attention/qkv", "cross/key_value")):
            out_features -= self.shapes.key_value_heads * self.shapes.head_dim
        elements = tokens * out_features
        traffic = ew.bias_gradient_bytes(elements, activation_bytes)
        return self.kernels.stream(f"{path}/backward_bias", traffic, elements, FLOPS_PER_ELEMENT["bias gradient"])
