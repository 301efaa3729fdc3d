"""Who is timed on a problem: our device library and the operators of the adapters, each with what it has to give by bits."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import torch

from . import timing
from .calls import Call, adapter, operator_of
from .device_calls import OWN, PRODUCTION, DeviceCalls
from .operands import E4M3, ProductTensors, quantize_call, quantize_input, recipe_call, up
from .problems import Product, Quantization

SCALES_FIRST = "cublaslt.sm90.fp8_block.scales_first"
COLS_FIRST = "unit=sm90.wgmma.fp8,promote=128,association=cols_first"
OWN_KERNEL = "assay:fp8_block_gemm"  # our own kernel, in place of cuBLASLt
ALONE = "cublaslt"  # our path without its set-up
COPY = "copy"
L2_BYTES = 64 << 20


@dataclasses.dataclass
class Contender:
    """One implementation on one problem.

    Attributes:
        launches: one call for each set of operands.
        clear: fills the outputs with what no call leaves. wrong: what of them is not the expected bits after the calls: "" or a sentence.
        said: what it is, its version, and what its bits were compared with.
    """

    name: str
    launches: list[Callable[[], Any]]
    clear: Callable[[], None]
    wrong: Callable[[], str]
    said: dict[str, str]


class Absent(Exception):
    """An implementation that cannot be timed on a problem, and why."""


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as integers, so that NaN equals itself."""
    return tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensor.element_size()])


def differing(name: str, got: torch.Tensor, want: torch.Tensor) -> str:
    count = int((bits(got) != bits(want)).sum())
    return f"{count} of {want.numel()} words of {name} differ" if count else ""


def version_of(kernel: Any) -> str:
    version = getattr(kernel, "version", "")
    return version() if callable(version) else version or f"PyTorch {torch.__version__}"


def _load(module: str) -> Any:
    try:
        return adapter(module)
    except ImportError as error:
        raise Absent(str(error)) from error


PRODUCTS = [  # adapter, operator, layout of the groups
    ("deepgemm", "fp8_contiguous", "contiguous"),
    ("deepgemm", "fp8_psum", "psum"),
    ("deepgemm", "fp8_masked", "masked"),
    ("sglang", "blockwise_grouped", "plain"),
    ("sglang", "es_blockwise_grouped", "plain"),
    ("fbgemm", "groupwise_grouped", "plain"),
    ("triton_kernels", "fp8_block", "plain"),
    ("transformer_engine", "multi_tensor_gemm", "plain"),
    ("transformer_engine", "grouped_gemm", "plain"),
]


def layouts_for(problem: Product, layout: str) -> bool:
    """Whether the layout is one in which such groups are given: contiguous where nothing has to be padded, masked where groups are small."""
    if layout == "contiguous":
        return problem.aligned
    if layout == "psum":
        return not problem.aligned
    return layout == "plain" or max(problem.splits) <= 64


class Products:
    """The contenders of one product, on the same operands."""

    def __init__(self, problem: Product, device: DeviceCalls, where: str = "cuda"):
        self.problem, self.device = problem, device
        self.tensors = ProductTensors(problem, where)
        self.plain, _ = self.tensors.plain()
        self._expected: dict[str, torch.Tensor] = {}

    def expected(self, plan: str | None, few_rows: int) -> torch.Tensor:
        """D of a plan, predicted; without a plan, groups of up to `few_rows` rows have one and the others another."""
        name = plan or "by groups"
        if name not in self._expected:
            if plan is not None:
                self._expected[name] = self.device.predict(self.plain, plan)
            else:
                few = torch.tensor([0 < rows <= few_rows for rows in self.problem.splits], device=self.plain.out.d.device)
                of_rows = torch.repeat_interleave(few, self.plain.splits)
                self._expected[name] = torch.where(of_rows[:, None], self.expected(COLS_FIRST, 0), self.expected(SCALES_FIRST, 0))
        return self._expected[name]

    def ours(self, name: str) -> Contender:
        d = torch.empty_like(self.plain.out.d)
        if name == ALONE:
            launch = self.device.product_alone(self.plain, d)
        else:
            launch = self.device.product(self.plain, d, OWN if name == OWN_KERNEL else PRODUCTION)
        want = self.expected(SCALES_FIRST, 0)

        def wrong() -> str:
            launch.require_ok()
            return differing("d", d, want)

        alone = ", its kernels alone" if name == ALONE else ""
        said = {"version": "FP8 block GEMM" if name == OWN_KERNEL else f"cuBLASLt {self.device.cublaslt_version()}{alone}",
                "checked": f"plan {SCALES_FIRST}, predicted by the emulated tensor core"}
        return Contender(name, [launch], lambda: d.view(torch.int16).fill_(-1), wrong, said)

    def theirs(self, module: str, name: str, layout: str) -> Contender:
        loaded = _load(module)
        kernel = getattr(loaded, name)
        call, places = getattr(self.tensors, layout)()
        if layout == "masked":  # a hint from which tiles are chosen: the mean
            loaded._EXPECTED_ROWS = max(1, round(self.problem.rows / len(self.problem.splits)))
        try:
            launch = operator_of(loaded, name, call)
        except NotImplementedError as error:
            raise Absent(str(error)) from error
        plan = kernel.plan(call) if callable(kernel.plan) else kernel.plan
        want = self.expected(plan, getattr(loaded, "_FEW_ROWS", 0))
        returned: list[torch.Tensor] = []

        def keep() -> None:
            returned[:] = [launch()]

        def wrong() -> str:
            d = returned[0] if returned and isinstance(returned[0], torch.Tensor) else call.out.d
            return differing("d", d if places is None else d[places], want)

        said = {"version": version_of(kernel), "groups": layout, "checked": f"plan {plan or 'by the rows of a group'}, predicted by the emulated tensor core"}
        return Contender(f"{module}:{name}", [keep], lambda: call.out.d.view(torch.int16).fill_(-1), wrong, said)

    def makers(self) -> dict[str, Callable[[], Contender]]:
        makers: dict[str, Callable[[], Contender]] = {name: (lambda name=name: self.ours(name)) for name in (timing.OURS, OWN_KERNEL, ALONE)}
        for module, name, layout in PRODUCTS:
            if layouts_for(self.problem, layout):
                makers[f"{module}:{name}"] = lambda module=module, name=name, layout=layout: self.theirs(module, name, layout)
        return makers


QUANTIZERS = {  # adapter, operator, preset
    "1x128": [("sglang", "group_v1", "sglang.group_v1"), ("sglang", "group_v2", "sglang.group_v2"), ("vllm", "per_token_group", "vllm.group"),
              ("triton_kernels", "act_quant", "deepseek_v3.cuda"), ("torchao", "act_quant", "torchao.block.triton")],
    "1xall": [("sglang", "per_token", "sglang.per_token.many"), ("vllm", "per_token", "vllm.per_token"),
              ("fbgemm", "per_row", "fbgemm.per_row")],
}


class Quantizers:
    """The contenders of one quantization, on the same operands: so many sets of them that no cache holds them."""

    def __init__(self, problem: Quantization, device: DeviceCalls, where: str = "cuda"):
        self.problem, self.device = problem, device
        sets = max(1, -(-4 * L2_BYTES // problem.bytes))
        self.x = [quantize_input(problem, where, seed) for seed in range(sets)]
        self.splits = torch.tensor(problem.splits, device=where) if problem.splits else None

    def _contender(self, name: str, calls: list[Call], launches: list[Callable[[], Any]], expected: list[tuple[torch.Tensor, torch.Tensor]],
                   said: dict[str, str], results: Callable[[int], tuple[torch.Tensor, torch.Tensor]]) -> Contender:
        def clear() -> None:
            for call in calls:
                call.out.data.fill_(0x7F)
                call.out.scale_inv.fill_(float("nan"))

        def wrong() -> str:
            found = []
            for i, (codes, scales) in enumerate(expected):
                got_codes, got_scales = results(i)
                found += [differing("codes", got_codes, codes), differing("scales", got_scales.view(-1), scales)]
            return "; ".join(filter(None, found))

        return Contender(name, launches, clear, wrong, said)

    def _by_rule(self, call: Call, preset: str, storage: str, splits: torch.Tensor | None = None) -> Any:
        return self.device.quantize(call.x, call.out.data, call.out.scale_inv, splits, preset=preset, block=self.problem.block, storage=storage)

    def _expected(self, calls: list[Call], preset: str, storage: str, splits: torch.Tensor | None = None) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Codes and scales of the rule, through the interpreter of rules: another kernel than each that is judged by them."""
        made = []
        for call in calls:
            want = Call(call.op, call.parameters, call.inputs, {name: torch.empty_like(each) for name, each in call.out.items()}, call.formats)
            want.out.data.fill_(0x7F)
            want.out.scale_inv.fill_(float("nan"))
            launch = self._by_rule(want, preset, storage, splits)
            launch()
            launch.require_ok()
            made.append((want.out.data, want.out.scale_inv))
        return made

    def _calls_by_recipe(self) -> list[Call]:
        """Scales as the recipe stores them: each group by itself, its rows up to a multiple of 4."""
        calls = [quantize_call(self.problem, x, "te") for x in self.x]
        rows = sum(up(each, 4) for each in self.problem.splits or (self.problem.rows,))
        for call in calls:
            call.out["scale_inv"] = torch.full((rows * self.problem.columns // 128,), float("nan"), device=call.x.device)
        return calls

    def ours(self) -> Contender:
        if self.problem.block != "1x128":
            return self.ours_by_rule(timing.OURS, "vllm.per_token")
        calls = self._calls_by_recipe()
        launches = [self.device.quantize(call.x, call.out.data, call.out.scale_inv, self.splits) for call in calls]
        expected = self._expected(calls, "te", "tma_aligned_per_group", self.splits)

        def results(i: int) -> tuple[torch.Tensor, torch.Tensor]:
            launches[i].require_ok()
            return calls[i].out.data, calls[i].out.scale_inv

        return self._contender(timing.OURS, calls, list(launches), expected,
                               {"version": "recipe block_1x128", "checked": "preset te, by the interpreter of rules"}, results)

    def ours_by_rule(self, name: str, preset: str) -> Contender:
        """The interpreter of rules. Nothing else of this library predicts it on this machine: the suite judges it by the CPU reference."""
        calls = [quantize_call(self.problem, x, preset) for x in self.x]
        launches = [self._by_rule(call, preset, "k_major") for call in calls]

        def results(i: int) -> tuple[torch.Tensor, torch.Tensor]:
            launches[i].require_ok()
            return calls[i].out.data, calls[i].out.scale_inv

        return self._contender(name, calls, list(launches), self._expected(calls, preset, "k_major"),
                               {"version": f"interpreter of rules, preset {preset}", "checked": "that it repeats its own bits"}, results)

    def by_recipe(self, module: str, name: str) -> Contender:
        """An operator that has the recipe block_1x128, its scales stored as ours."""
        loaded = _load(module)
        calls = self._calls_by_recipe()
        try:
            launches = [operator_of(loaded, name, recipe_call(call, self.splits)) for call in calls]
        except NotImplementedError as error:
            raise Absent(str(error)) from error
        said = {"version": version_of(getattr(loaded, name)), "checked": "preset te, by the interpreter of rules"}
        return self._contender(f"{module}:{name}", calls, launches, self._expected(calls, "te", "tma_aligned_per_group", self.splits), said,
                               lambda i: (calls[i].out.data, calls[i].out.scale_inv))

    def theirs(self, module: str, name: str, preset: str) -> Contender:
        loaded = _load(module)
        calls = [quantize_call(self.problem, x, preset) for x in self.x]
        try:
            launches = [operator_of(loaded, name, call) for call in calls]
        except NotImplementedError as error:
            raise Absent(str(error)) from error
        returned: dict[int, Any] = {}

        def keep(i: int) -> Callable[[], None]:
            return lambda: returned.__setitem__(i, launches[i]())

        def results(i: int) -> tuple[torch.Tensor, torch.Tensor]:
            made = returned.get(i)
            return (made[0].view(torch.uint8), made[1].reshape(-1)) if isinstance(made, (tuple, list)) else (calls[i].out.data, calls[i].out.scale_inv)

        said = {"version": version_of(getattr(loaded, name)), "checked": f"preset {preset}, by the interpreter of rules"}
        return self._contender(f"{module}:{name}", calls, [keep(i) for i in range(len(calls))], self._expected(calls, preset, "k_major"), said, results)

    def copy(self) -> Contender:
        """A copy that moves as many bytes."""
        sources = [torch.zeros(self.problem.bytes // 2, dtype=torch.uint8, device=x.device) for x in self.x]
        targets = [torch.empty_like(source) for source in sources]
        for i, source in enumerate(sources):
            source.random_(generator=torch.Generator(source.device).manual_seed(i))
        return Contender(COPY, [(lambda i=i: targets[i].copy_(sources[i])) for i in range(len(sources))], lambda: [each.fill_(0) for each in targets],
                         lambda: "; ".join(filter(None, (differing("the copy", *pair) for pair in zip(targets, sources)))),
                         {"version": f"PyTorch {torch.__version__}", "checked": "the copied bytes"})

    def makers(self) -> dict[str, Callable[[], Contender]]:
        makers: dict[str, Callable[[], Contender]] = {timing.OURS: self.ours, COPY: self.copy}
        if self.problem.block == "1x128" and not self.problem.splits:
            makers["assay:by_rule"] = lambda: self.ours_by_rule("assay:by_rule", "te")
        for module, name, preset in QUANTIZERS[self.problem.block]:
            makers[f"{module}:{name}"] = lambda module=module, name=name, preset=preset: self.theirs(module, name, preset)
        if self.problem.block == "1x128":
            for name in ("quantize", "group_quantize") if self.problem.splits else ("quantize",):
                makers[f"transformer_engine:{name}"] = lambda name=name: self.by_recipe("transformer_engine", name)
        return makers
