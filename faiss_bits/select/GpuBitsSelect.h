#pragma once

#include <string>

#include <faiss/gpu/GpuResources.h>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/common/Types.h"
#include "kernels/select/SelectAlgorithm.h"

namespace faiss_bits::gpu {

/// One k-selection: the k best keys of every row of a matrix.
struct GpuSelectParams {
    idx_t rows = 0;       ///< 0 or more
    idx_t cols = 0;       ///< keys of a row, 0 or more
    int k = 0;            ///< 1 or more; may exceed cols
    bool largest = false; ///< default: the smallest keys
    bool sorted = true;   ///< best first; false: the same k in any order

    /// Auto: the fastest known for the shape (kernels/select/SelectAlgorithm.h)
    SelectAlgorithm algorithm = SelectAlgorithm::Auto;

    DataType keyType = DataType::Float32; ///< any of DataType
    const void* keys = nullptr;           ///< [rows, cols] of keyType
    /// Elements from row to row of keys; 0 = cols. Other than cols for keys on
    /// the device alone.
    idx_t rowStride = 0;

    /// [rows, cols] of idType; null: the id of a key is its column number
    const void* ids = nullptr;
    /// Elements from row to row of ids; 0 = cols. As rowStride.
    idx_t idStride = 0;
    IdType idType = IdType::Int64; ///< of ids and outIds

    void* outKeys = nullptr; ///< [rows, k] of keyType
    void* outIds = nullptr;  ///< [rows, k] of idType

    int device = -1; ///< -1: the current device
};

/// Selects the k smallest (or largest) keys of every row.
///
/// Result   best first; equal keys: lower column first; NaN behind every
///          number; fewer than k columns: id -1 with the largest (for
///          smallest) or lowest (for largest) finite value of keyType
/// Pointers each on the host or on the device that runs, in any mix; host
///          rows go through the GPU in pages
/// Stream   ordered on the resources' default stream of the device. With
///          pointers to the device alone it enqueues and returns, unless memory
///          comes from cudaMalloc (below). With results on the host it can be
///          interrupted (faiss::InterruptCallback): "computation interrupted"
/// Memory   scratch as the algorithm needs it: none or little up to k = 2048,
///          some copies of keys and ids beyond. Rows are taken in batches whose
///          scratch fits the resources' temporary memory or 32 MiB, whichever
///          is more; one row at least. Host rows take 32 MiB of staging, or two
///          rows where that is more. What the temporary memory cannot give
///          comes from cudaMalloc, and that and its release wait for the device
/// Errors   FaissException naming the argument and its value, or the algorithm
///          and why it cannot take the problem; or when memory is short
/// Cost     reads the keys once; see kernels/select/Select.h
void selectK(
        faiss::gpu::GpuResourcesProvider* provider,
        const GpuSelectParams& params);

/// How a selection goes. docs/plans.md says what to make of it.
struct GpuSelectPlan {
    /// Its name as in SelectAlgorithm.h; "none" without rows.
    std::string algorithm = "none";
    idx_t pages = 0;         ///< rows go through the GPU page by page
    idx_t rowsPerPage = 0;   ///< of all pages but the last
    idx_t rowsPerBatch = 0;  ///< of a page: as many as their scratch fits
    size_t scratchBytes = 0; ///< of a batch
    /// Of all rows, in random order, with arrays on the device: copies from and
    /// to the host are not in it. Measured on an H200 and scaled by clocks for
    /// other GPUs (docs/plans.md: how near it is).
    double expectedMs = 0;
    /// The plan of a batch in the kernels' own words.
    std::string details;

    /// One line.
    std::string toString() const;
};

/// What selectK(provider, params) would do now; nothing runs. Pointers in
/// `params` are not read, but `ids` says by not being null that there are ids.
///
/// hostArrays  the arrays will lie in pageable memory of the host (default), or
///             on the device
/// Errors      FaissException, as selectK
GpuSelectPlan planSelectK(
        faiss::gpu::GpuResourcesProvider* provider,
        const GpuSelectParams& params,
        bool hostArrays = true);

/// The same for an H200 with FAISS's default temporary memory, which need not
/// be there: host only, no CUDA call. params.device is not read.
GpuSelectPlan planSelectKForH200(
        const GpuSelectParams& params,
        bool hostArrays = true);

} // namespace faiss_bits::gpu
