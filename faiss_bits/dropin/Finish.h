/// From the result of runSelect to that of FAISS's functions.
#pragma once

#include <cuda_runtime_api.h>

#include "faiss_bits/dropin/Request.h"

namespace faiss_bits::dropin {

struct FinishProblem {
    Request request; ///< outputs, types

    /// Result of runSelect, [rows, k]: the outputs themselves, or copies.
    void* keys;
    idx_t keyStride;
    void* ids;
    idx_t idStride;

    explicit FinishProblem(const Request& r)
            : request(r),
              keys(r.outKeys),
              keyStride(r.outKeyStride),
              ids(r.outIds),
              idStride(r.outIdStride) {}
};

/// Keys that FAISS does not return become (worst, -1), and copies go to their
/// places; without copies it reads one key a row. Enqueues on `stream`.
void runFinish(const FinishProblem& problem, cudaStream_t stream);

/// Likewise of the results of a whole search, best first and without gaps: all
/// but inputs and strides of the request.
void dropWorst(Request results, cudaStream_t stream);

/// Throws Error where the kernels of this build do not run on the current
/// device.
void checkKernelsLoad();

} // namespace faiss_bits::dropin
