"""assay.check: a right function passes by bits; a planted fault is found, with its place and its cause."""

import assay
import numpy as np
import pytest

import formulas

LINE = "quantize recipe=block_1x128 x_type=f32 direction=rowwise splits=8,12,20 K=512 seed=5"


def bind(t):
    return t.x, t.splits, t.out.codes, t.out.scale_inv


def judged(fault, line=LINE, **options):
    """The verdict on the right function with a fault planted behind it."""

    def quantize(x, splits, codes, scale_inv):
        formulas.grouped_block_1x128(x, splits, codes, scale_inv)
        fault(x, splits, codes, scale_inv)

    result = assay.check(quantize, line, bind=bind, **options)
    assert len(result.verdicts) == 1
    return result


def test_the_right_function_passes_by_bits():
    result = judged(lambda *tensors: None)
    assert result.passed and result and result.verdicts[0].ground == "bits"
    assert result.verdicts[0].elements == 40 * 512 + 40 * 4
    assert str(result).startswith("PASS, by bits: ")
    result.raise_on_failure()


def test_scales_of_the_second_group_are_off_by_one_block():
    def shift(x, splits, codes, scale_inv):
        scales = formulas.group_scales(scale_inv, splits, 512, 1)
        scales[:] = np.roll(scales, -1, axis=0)

    result = judged(shift)
    verdict = result.verdicts[0]
    assert not result.passed and verdict.verdict == "failed"
    finding = verdict.findings[0]
    assert finding["output"].startswith("rowwise_scale_inv") and "group 1" in finding["where"]
    assert "group 0" not in finding["where"] and "group 2" not in finding["where"]
    assert any("k-block" in hint and "by 1" in hint for hint in verdict.hints), verdict.hints
    with pytest.raises(assay.CheckFailed, match="hint .*k-block"):
        result.raise_on_failure()
    assert "assay.check(" in verdict.text and LINE in verdict.text


def test_rows_of_a_group_are_exchanged():
    def swap(x, splits, codes, scale_inv):
        codes[8:20] = codes[8:20].reshape(6, 2, 512)[:, ::-1].reshape(12, 512)

    assert any("row i xor 1" in hint for hint in judged(swap).verdicts[0].hints)


def test_the_last_group_is_not_written():
    def quantize(x, splits, codes, scale_inv):
        formulas.grouped_block_1x128(x, splits[:-1], codes, scale_inv)

    verdict = assay.check(quantize, LINE, bind=bind).verdicts[0]
    assert any("not written" in hint for hint in verdict.hints)


def test_rounding_toward_zero_is_a_wrong_code():
    def truncate(x, splits, codes, scale_inv):
        row = at = 0
        for rows in map(int, splits):
            scales = scale_inv[at : at + 4 * rows].reshape(4, rows)
            tiles = x[row : row + rows].reshape(rows, 4, 128) / scales.T[:, :, None]
            nearest = formulas.e4m3_codes(tiles)
            too_far = np.abs(nearest.view(formulas.E4M3).astype(np.float32)) > np.abs(tiles)
            codes[row : row + rows] = (nearest - too_far).reshape(rows, 512)
            row, at = row + rows, at + 4 * rows

    verdict = judged(truncate).verdicts[0]
    assert verdict.findings[0]["output"].startswith("rowwise_data")


def test_a_write_behind_an_output_is_found():
    def overrun(x, splits, codes, scale_inv):
        flat = codes.reshape(-1)
        np.lib.stride_tricks.as_strided(flat, (flat.size + 8,), (1,))[-8:] = 7

    verdict = judged(overrun).verdicts[0]
    assert verdict.verdict == "failed" and any(each["kind"] == "memory" for each in verdict.findings)


def test_a_changed_input_is_found():
    def change(x, splits, codes, scale_inv):
        x[3, 5] = 0

    verdict = judged(change).verdicts[0]
    assert any(each["kind"] == "memory" and "in/x" in each["text"] for each in verdict.findings)


def test_padding_must_stay_as_it_is():
    line = "quantize recipe=block_1x128 x_type=f32 direction=rowwise splits=5,6 K=256 seed=5"

    def pad(x, splits, codes, scale_inv):
        scale_inv[:16].reshape(2, 8)[:, 5:] = 0

    assert judged(lambda *tensors: None, line).passed
    verdict = judged(pad, line).verdicts[0]
    assert not verdict.passed and "padding" in verdict.text


def test_an_exception_is_a_verdict_with_its_traceback():
    def broken(*tensors):
        raise IndexError("no group 3")

    verdict = judged(broken).verdicts[0]
    assert verdict.verdict == "failed" and "IndexError: no group 3" in verdict.text
    assert "test_check.py" in verdict.trace and "raise IndexError" in str(verdict)


def test_what_is_not_implemented_is_absent_where_memory_stays():
    def absent(t):
        raise NotImplementedError("no ragged groups yet")

    result = assay.check(absent, LINE)
    assert result.verdicts[0].verdict == "not run" and "no ragged groups yet" in result.verdicts[0].text
    assert not result.passed and "no case was judged" in str(result)

    def writes_first(t):
        t.out.codes[0, 0] = 1
        raise NotImplementedError("no ragged groups yet")

    assert assay.check(writes_first, LINE).verdicts[0].verdict == "skip without proof"


def test_results_may_be_returned():
    line = "quantize recipe=block_1x128 x_type=f32 direction=rowwise R=33 K=272 seed=5"
    result = assay.check(formulas.block_1x128, line, bind=lambda t: t.x)
    assert result.passed and "padding was not judged" in result.verdicts[0].way
    assert assay.check(lambda x: dict(zip(("codes", "scale_inv"), formulas.block_1x128(x))), line, bind=lambda t: [t.x]).passed
    turned = assay.check(lambda x: (formulas.block_1x128(x)[0], formulas.block_1x128(x)[1].T), line, bind=lambda t: t.x)
    assert "of shape [33, 3]: expected [3, 36]" in turned.verdicts[0].text
    missing = assay.check(lambda x: formulas.block_1x128(x)[0], line, bind=lambda t: t.x)
    assert "returned 1 arrays: expected 2: rowwise_data, rowwise_scale_inv" in missing.verdicts[0].text


def test_a_replay_sees_what_was_kept_from_the_first_call():
    line = LINE + " replay=4:data,splits"
    assert judged(lambda *tensors: None, line).passed
    kept = {}

    def keeps_splits(x, splits, codes, scale_inv):
        if id(kept.setdefault("shape", x.shape)) and "splits" not in kept:
            kept["splits"] = splits.copy()
        formulas.grouped_block_1x128(x, kept["splits"], codes, scale_inv)

    verdict = assay.check(keeps_splits, line, bind=bind).verdicts[0]
    assert verdict.verdict == "failed" and "replay" in verdict.text or "step" in verdict.text


def test_runs_find_what_happens_now_and_then():
    calls = []

    def now_and_then(x, splits, codes, scale_inv):
        calls.append(1)
        if len(calls) > 12:
            codes[0, 0] ^= 1

    assert judged(now_and_then).passed
    calls.clear()
    result = judged(now_and_then, runs=8)
    assert not result.passed and "having passed before" in result.verdicts[0].text


def test_a_product_by_its_plan_and_without_one():
    line = "grouped_gemm kind=bf16 d_type=f32 splits=16,3 N=32 K=64 data=integers seed=3"

    def product(x, w, splits, d):
        row = 0
        for group, rows in enumerate(map(int, splits)):
            weight = w[group * 32 : (group + 1) * 32].astype(np.float64)
            d[row : row + rows] = x[row : row + rows].astype(np.float64) @ weight.T
            row += rows

    result = assay.check(product, line, bind=lambda t: (t.x, t.w, t.splits, t.out.d))
    assert result.passed and result.verdicts[0].ground == "order-free bits"
    random = line.replace("data=integers", "data=uniform check=bound")
    assert assay.check(product, random, bind=lambda t: (t.x, t.w, t.splits, t.out.d)).verdicts[0].ground == "bound"
    stated = assay.check(product, random.replace(" check=bound", ""), bind=lambda t: (t.x, t.w, t.splits, t.out.d), plan="cublaslt.sm90.bf16")
    assert not stated.passed, "f64 sums are not those of a tensor core"

    def of_the_first_weight(x, w, splits, d):
        d[:19] = x[:19].astype(np.float64) @ w[:32].astype(np.float64).T

    verdict = assay.check(of_the_first_weight, line, bind=lambda t: (t.x, t.w, t.splits, t.out.d)).verdicts[0]
    assert "group 1" in verdict.findings[0]["where"]


def test_a_plan_is_asked_for_products_alone_and_may_not_know_the_call():
    def asked(line, plan):
        return assay.check(assay.Kernel(lambda t: t.out.update_nothing, plan=plan), line).verdicts[0].text

    product = "grouped_gemm kind=bf16 splits=3 N=32 K=64 seed=3"

    def broken(t):
        raise RuntimeError("a fault of the plan")

    assert "a fault of the plan" in asked(product, broken)
    for plan in (lambda t: t.split_accumulator, lambda t: t["x_rowwise_data"], lambda t: (_ for _ in ()).throw(NotImplementedError("none"))):
        assert "update_nothing" in asked(product, plan)
    assert "update_nothing" in asked("quantize recipe=mxfp8 R=1 K=32", broken)


def test_a_case_line_that_makes_no_sense():
    with pytest.raises(ValueError, match="did you mean"):
        assay.check(lambda t: None, "quantise recipe=mxfp8 R=1 K=32")
    with pytest.raises(ValueError, match="no case is selected"):
        assay.check(lambda t: None)
    with pytest.raises(ValueError, match="memory is 'numby'"):
        assay.check(lambda t: None, LINE, memory="numby")


def test_a_profile_leaves_out_what_only_a_backend_can_be_asked():
    result = assay.check(lambda t: None, "splits_to_offsets", profile="smoke")
    assert all("contract=1" not in each.line for each in result.verdicts)
    assert not result.passed and not any(each.passed for each in result.verdicts)


def test_the_reference_passes_what_it_expects():
    def answer(t):
        own = {name: array for name, array in t.inputs.items()}
        return assay.expect(line, **own)

    for line in assay.cases("quantize recipe=mxfp8", profile="smoke").lines[:4]:
        if "replay" not in line and "noop" not in line:
            assert assay.check(answer, line).passed, line
