#pragma once

#include "kernels/knn/fused/tensor/TensorScanLaunch.h"

namespace faiss_bits {

/// As launchWgmmaScan, for scans whose fragments have several values that pass;
/// of rows of 128 bytes a slab that are not streamed (WgmmaShape.h).
TensorScanLaunch launchWgmmaDense;

} // namespace faiss_bits
