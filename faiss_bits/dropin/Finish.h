/// From the result of runSelect to that of FAISS's functions.
#pragma once

#include <cuda_runtime_api.h>

#include "faiss_bits/dropin/Request.h"

namespace faiss_bits::dropin {

struct FinishProblem {
    Request request; ///< outputs, given ids, types

    /// Result of runSelect, [rows, k]: the outputs themselves, or copies.
    void* keys;
    idx_t keyStride;
    void* ids; ///< column numbers
    idx_t idStride;
    /// The outputs lie in the given ids: they are fetched into the copies, all
    /// of them before the first output is written.
    bool fetchFirst = false;

    explicit FinishProblem(const Request& r)
            : request(r),
              keys(r.outKeys),
              keyStride(r.outKeyStride),
              ids(r.outIds),
              idStride(r.outIdStride) {}
};

/// Keys that FAISS does not return become (worst, -1), columns become given
/// ids, copies go to their places. With neither of the last two it reads one
/// key a row. Enqueues on `stream`.
void runFinish(const FinishProblem& problem, cudaStream_t stream);

/// Throws Error where the kernels of this build do not run on the current
/// device.
void checkKernelsLoad();

} // namespace faiss_bits::dropin
