// Two microbatches in flight as in a 1F1B schedule: forward 0, forward 1, backward 0, backward 1, by FP8 blocks.

#include "trainer.h"

#include <cuda_runtime_api.h>
#include <device/linear/grouped_linear.h>
#include <device/linear/linear_kernels.h>

#include <exception>

namespace {

using namespace assay::device;

// A copy in device memory.
class OnDevice {
 public:
  OnDevice(const void* from, std::size_t bytes) : bytes_(bytes) {
    if (cudaMalloc(&data_, bytes) != cudaSuccess || cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice) != cudaSuccess)
      throw CudaError("upload");
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  void read(void* to) const {
    if (cudaMemcpy(to, data_, bytes_, cudaMemcpyDeviceToHost) != cudaSuccess) throw CudaError("download");
  }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};
template <class Value>
OnDevice upload(const std::vector<Value>& values) {
  return OnDevice(values.data(), values.size() * sizeof(Value));
}

}  // namespace

std::string train(const std::vector<std::uint16_t> (&w)[2], Microbatch (&m)[2], std::vector<float>& dw, bool& no_device) {
  int devices = 0;
  no_device = cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0;
  if (no_device) return "there is no CUDA device";
  try {
    assay::LinearConfig config;
    config.recipe = assay::LinearRecipe::block;
    config.force_pow_2_scales = true;
    LinearChoice choice = choose_linear_path(config, {}, device_kernels().architecture());
    if (choice.verdict != LinearVerdict::refused) choice = {LinearVerdict::emulated, "the same everywhere", "sm90"};
    GroupedLinearOptions options;
    options.config = config;
    options.groups = 4;
    options.N = kN;
    options.K = kK;
    options.rows_capacity = kRows + 32;
    options.microbatches = 2;
    options.path = linear_path_of(choice, config, {});

    cudaStream_t stream = nullptr;
    if (cudaStreamCreate(&stream) != cudaSuccess) return "no stream";
    LinearPool pool(stream);
    options.pool = &pool;
    GroupedLinear layer(options);
    const OnDevice w0 = upload(w[0]), w1 = upload(w[1]), dw_at = upload(dw);
    const OnDevice x0 = upload(m[0].x), x1 = upload(m[1].x), dy0 = upload(m[0].dy), dy1 = upload(m[1].dy);
    const OnDevice y0 = upload(m[0].y), y1 = upload(m[1].y), dx0 = upload(m[0].dx), dx1 = upload(m[1].dx);
    const OnDevice s0 = upload(kSplits[0]), s1 = upload(kSplits[1]);
    const OnDevice *x[2] = {&x0, &x1}, *dy[2] = {&dy0, &dy1}, *y[2] = {&y0, &y1}, *dx[2] = {&dx0, &dx1}, *s[2] = {&s0, &s1},
                   *weights[2] = {&w0, &w1};

    int place[2];
    for (int i = 0; i < 2; ++i) {
      GroupedLinearForward forward;
      forward.x = x[i]->data();
      forward.rows = {kRows, static_cast<const std::int64_t*>(s[i]->data()), 4};
      forward.w.data = weights[i]->data();
      forward.y = y[i]->data();
      place[i] = layer.forward(forward, stream).microbatch;
    }
    for (int i = 0; i < 2; ++i) {
      GroupedLinearBackward backward;
      backward.microbatch = place[i];
      backward.dy = dy[i]->data();
      backward.dx = dx[i]->data();
      backward.dw = dw_at.data();
      layer.backward(backward, stream);
    }
    if (cudaStreamSynchronize(stream) != cudaSuccess) return "the stream failed";
    for (int i = 0; i < 2; ++i) {
      y[i]->read(m[i].y.data());
      dx[i]->read(m[i].dx.data());
    }
    dw_at.read(dw.data());
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}
