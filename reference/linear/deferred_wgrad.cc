#include "reference/linear/deferred_wgrad.h"

#include <cstddef>
#include <string>
#include <vector>

#include "reference/linear/linear_quantization.h"
#include "reference/types/error.h"

namespace assay {

struct DeferredWgrad::Work {
  std::string architecture;
  std::vector<std::int64_t> splits;
  std::vector<std::byte> dy, x;
  std::vector<float> dy_scale, x_scale;
  LinearConfig config;
  LinearShape shape;
  LinearWgrad operands;
  void* dw;
};

void DeferredWgrad::store(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw) {
  linear::check_wgrad(config, shape, operands, dw);
  linear::check_product(config, shape, GemmLayout::NT);
  const std::int64_t rows = linear::used_rows(shape);  // rows beyond the groups may not exist
  const auto matrix = [&](const void* from, std::int64_t columns) {
    const auto* bytes = static_cast<const std::byte*>(from);
    return std::vector<std::byte>(bytes, bytes + bytes_of(config.type, rows * columns));
  };
  const auto scales = [&](const float* from) {
    return config.recipe == LinearRecipe::tensor_delayed ? std::vector<float>(from, from + shape.splits.size())
                                                         : std::vector<float>();
  };
  const auto work = std::make_shared<Work>(Work{std::string(config.architecture),
                                                {shape.splits.begin(), shape.splits.end()},
                                                matrix(operands.dy, shape.N),
                                                matrix(operands.x, matrices_in_x(config.activation) * shape.K),
                                                scales(operands.dy_scale),
                                                scales(operands.x_scale),
                                                config,
                                                shape,
                                                operands,
                                                dw});
  work->config.architecture = work->architecture;
  work->shape.splits = work->splits;
  work->shape.rows = rows;
  work->operands.dy = work->dy.data();
  work->operands.x = work->x.data();
  work->operands.dy_scale = work->dy_scale.data();
  work->operands.x_scale = work->x_scale.data();
  work_.push_back(work);
}

void DeferredWgrad::backward_dw() {
  require(!work_.empty(), "pending work", work_.size(), "a weight gradient that was stored and not yet carried out");
  const Work& oldest = *work_.front();
  linear_wgrad(oldest.config, oldest.shape, oldest.operands, oldest.dw);
  work_.pop_front();  // only now: work that failed is not lost
}

}  // namespace assay
