/// What decodes the codes of a scalar quantizer.
#pragma once

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

/// What ListDecoding says of a Scalar coding, to params.starts and steps, by a
/// block.
__device__ __forceinline__ void writeScalarSteps(const IvfParams& params) {
    const ListDecoding& decoding = params.lists.decoding;
    const ListCoding coding = params.lists.coding;
    const float most = coding == ListCoding::Scalar8 ? 255.0f
            : coding == ListCoding::Scalar6          ? 63.0f
                                                     : 15.0f;
    for (int c = threadIdx.x; c < params.d; c += blockDim.x) {
        float start = 0;
        float step = 1;
        if (decoding.trained) {
            const int range = decoding.ranges == 1 ? 0 : c;
            const float size = decoding.trained[decoding.ranges + range];
            step = decoding.byInverse ? __fmul_rn(size, __fdiv_rn(1.0f, most))
                                      : __fdiv_rn(size, most);
            start = __fmaf_rn(0.5f, step, decoding.trained[range]);
        }
        params.starts[c] = start;
        params.steps[c] = step;
    }
}

} // namespace faiss_bits
