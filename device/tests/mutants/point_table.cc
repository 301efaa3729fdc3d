#include "device/tests/mutants/point_table.h"

#include <iterator>

#include "device/tests/mutants/mutation.h"

namespace assay::mutants {

const Mutant kMutants[] = {
#include "points.inc"  // of this room: mutate.py makes it
};
const int kCount = static_cast<int>(std::size(kMutants));
#ifdef ASSAY_CHECKED_KERNELS
const bool kChecked = true;
#else
const bool kChecked = false;
#endif

int chosen = -1;
std::uint8_t reached[std::size(kMutants)];

}  // namespace assay::mutants
