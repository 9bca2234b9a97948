#pragma once

#include <functional>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/range/FlatRange.h"
#include "kernels/range/boxes/RangeBoxes.h"

/// What range searches by any class have in common. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Scratch of a search whose results go to the host: parts of them take no
/// more than three times as much.
constexpr size_t kHostRangeScratch = size_t(512) << 20;

/// Throws FaissException for a radius that is NaN and a limit below zero.
void requireRange(float radius, idx_t maxResults);

/// run(first, count, x on the device) for some of n queries at a time, rows of
/// so many bytes: all where they lie on the device, else pages of them, which
/// are copied. Waits behind each for what was enqueued.
///
/// name   of x, for exceptions
void forQueryPages(
        const GpuContext& context,
        const char* name,
        idx_t n,
        const void* x,
        size_t rowBytes,
        const std::function<void(idx_t, idx_t, const void*)>& run);

/// runFlatRange with scratch from the resources' temporary memory.
void runRangeCall(
        const GpuContext& context,
        const FlatKnnProblem& problem,
        float radius,
        size_t mostScratch,
        RangeSink& sink);

/// runBoxRange likewise, of the problem's queries and filter.
void runBoxCall(
        const GpuContext& context,
        const RangeBoxes& boxes,
        const FlatKnnProblem& problem,
        float radius,
        size_t mostScratch,
        RangeSink& sink);

} // namespace faiss_bits::gpu::detail
