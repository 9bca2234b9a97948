#pragma once

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/flat/SearchParametersBitsFlat.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// A search whose caller knows beyond which distance it has no use for a
/// result: FlatKnnProblem::limits says what that makes of it. For arrays on the
/// device.
struct SearchWithin : public SearchParametersBitsFlat {
    const float* limits = nullptr; ///< [queries], on the device
    idx_t numWithin = 0;           ///< vectors within them, about
};

} // namespace faiss_bits::gpu::detail
