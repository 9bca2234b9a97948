#include "faiss_bits/cluster/TrainingVectors.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/flat/VectorKernels.h"
#include "kernels/cluster/ClusterSums.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Memory that stays for the whole call, beside the stack of temporary memory.
faiss::gpu::GpuMemoryReservation allocLasting(
        const GpuContext& context,
        size_t bytes) {
    return context.resources->allocMemoryHandle(faiss::gpu::AllocRequest(
            faiss::gpu::AllocInfo(
                    faiss::gpu::AllocType::FlatData,
                    context.device,
                    faiss::gpu::MemorySpace::Device,
                    context.stream),
            bytes));
}

/// Copies host rows to the device in pages, through pinned memory where there
/// is some; can be interrupted.
void copyRows(
        const GpuContext& context,
        const char* name,
        const float* from,
        idx_t rows,
        int components,
        float* to) {
    const size_t rowBytes = sizeof(float) * components;
    PagedCall call(context);
    const int array = call.input(name, from, rowBytes);
    PageLimits limits;
    limits.rows = rows;
    call.run(limits, [&](const Page& page) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                to + size_t(page.first) * components,
                page.as<const void>(array),
                rowBytes * page.rows,
                cudaMemcpyDeviceToDevice,
                context.stream));
    });
}

/// forHostParts; true if all calls of f return true.
template <class F>
bool forParts(idx_t n, const F& f) {
    std::atomic<bool> all{true};
    forHostParts(n, 1 << 16, [&](idx_t begin, idx_t end) {
        if (!f(begin, end)) {
            all = false;
        }
    });
    return all;
}

/// Floats that the host looks at between two questions for an interrupt.
constexpr idx_t kHostFloats = idx_t(1) << 27;

/// forParts for `rows` rows of some floats, which can be interrupted.
template <class F>
bool forRows(idx_t rows, int components, F f) {
    const idx_t step = std::max<idx_t>(kHostFloats / components, 1);
    bool all = true;
    for (idx_t first = 0; first < rows && all; first += step) {
        throwIfInterrupted();
        all = forParts(
                std::min(step, rows - first), [&](idx_t begin, idx_t end) {
                    return f(first + begin, first + end);
                });
    }
    return all;
}

std::vector<float> gatherOnHost(
        const float* from,
        int components,
        const std::vector<idx_t>& rows) {
    std::vector<float> out(rows.size() * components);
    forRows(idx_t(rows.size()), components, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; ++i) {
            std::memcpy(
                    out.data() + size_t(i) * components,
                    from + size_t(rows[i]) * components,
                    sizeof(float) * components);
        }
        return true;
    });
    return out;
}

bool isFiniteOnHost(const float* values, size_t count) {
    return forRows(idx_t(count), 1, [&](idx_t begin, idx_t end) {
        for (idx_t i = begin; i < end; ++i) {
            if (!std::isfinite(values[i])) {
                return false;
            }
        }
        return true;
    });
}

bool isFiniteOnDevice(
        const GpuContext& context,
        const float* values,
        size_t count) {
    auto memory = allocTemporary(context, sizeof(unsigned));
    auto* found = static_cast<unsigned*>(memory.get());
    BITS_CUDA_CHECK(
            cudaMemsetAsync(found, 0, sizeof(unsigned), context.stream));
    runFindNotFinite(values, count, found, context.stream);
    unsigned blocks = 0;
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            &blocks, found, sizeof(blocks), cudaMemcpyDefault, context.stream));
    waitFor(context.stream);
    return blocks == 0;
}

} // namespace

TrainingVectors::TrainingVectors(
        const GpuContext& context,
        idx_t n,
        int d,
        const float* x,
        const float* weights)
        : context_(context),
          n_(n),
          d_(d),
          x_(x),
          weights_(weights),
          onDevice_(!placeOf(context, "x", x).onHost),
          weightsOnDevice_(
                  weights && !placeOf(context, "x_weights", weights).onHost) {}

void TrainingVectors::gatherOnDevice_(
        const float* from,
        int components,
        const std::vector<idx_t>& rows,
        float* out) const {
    const size_t bytes = sizeof(idx_t) * rows.size();
    auto ids = allocTemporary(context_, bytes);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            ids.get(), rows.data(), bytes, cudaMemcpyDefault, context_.stream));
    GatherProblem problem;
    problem.vectors = from;
    problem.n = n_;
    problem.d = components;
    problem.ids = static_cast<const idx_t*>(ids.get());
    problem.numIds = idx_t(rows.size());
    problem.out = out;
    runGather(problem, context_.stream);
}

void TrainingVectors::takeSample(const std::vector<idx_t>& rows) {
    if (onDevice_) {
        vectorMemory_ =
                allocLasting(context_, sizeof(float) * d_ * rows.size());
        auto* sample = static_cast<float*>(vectorMemory_.get());
        gatherOnDevice_(x_, d_, rows, sample);
        x_ = sample;
    } else {
        hostSample_ = gatherOnHost(x_, d_, rows);
        x_ = hostSample_.data();
    }
    if (weightsOnDevice_) {
        weightMemory_ = allocLasting(context_, sizeof(float) * rows.size());
        auto* sample = static_cast<float*>(weightMemory_.get());
        gatherOnDevice_(weights_, 1, rows, sample);
        weights_ = sample;
    } else if (weights_) {
        hostWeights_ = gatherOnHost(weights_, 1, rows);
        weights_ = hostWeights_.data();
    }
    n_ = idx_t(rows.size());
}

void TrainingVectors::load(size_t mostBytes) {
    if (weights_ && !weightsOnDevice_) {
        weightMemory_ = allocLasting(context_, sizeof(float) * n_);
        auto* copy = static_cast<float*>(weightMemory_.get());
        copyRows(context_, "x_weights", weights_, n_, 1, copy);
        weights_ = copy;
        weightsOnDevice_ = true;
    }
    if (onDevice_) {
        return;
    }
    if (sizeof(float) * size_t(n_) * d_ <= mostBytes) {
        vectorMemory_ = allocLasting(context_, sizeof(float) * size_t(n_) * d_);
        auto* copy = static_cast<float*>(vectorMemory_.get());
        copyRows(context_, "x", x_, n_, d_, copy);
        x_ = copy;
        onDevice_ = true;
        std::vector<float>().swap(hostSample_);
    } else {
        const idx_t rows = std::min(n_, clusterBlockRows(d_));
        vectorMemory_ = allocLasting(context_, sizeof(float) * rows * d_);
        blockCopy_ = static_cast<float*>(vectorMemory_.get());
    }
}

void TrainingVectors::requireFinite() const {
    const size_t count = size_t(n_) * d_;
    FAISS_THROW_IF_NOT_MSG(
            onDevice_ ? isFiniteOnDevice(context_, x_, count)
                      : isFiniteOnHost(x_, count),
            "x: input contains NaN's or Inf's");
}

void TrainingVectors::requireFiniteWeights() const {
    FAISS_THROW_IF_NOT_MSG(
            !weights_ || isFiniteOnDevice(context_, weights_, n_),
            "x_weights: input contains NaN's or Inf's");
}

void TrainingVectors::gather(const std::vector<idx_t>& rows, float* out) const {
    if (rows.empty()) {
        return;
    }
    if (onDevice_) {
        gatherOnDevice_(x_, d_, rows, out);
        return;
    }
    const std::vector<float> gathered = gatherOnHost(x_, d_, rows);
    copyRows(context_, "x", gathered.data(), idx_t(rows.size()), d_, out);
}

void TrainingVectors::forBlocks(
        const std::function<void(const TrainingBlock&)>& work) const {
    const idx_t blockRows = clusterBlockRows(d_);
    for (idx_t first = 0; first < n_; first += blockRows) {
        TrainingBlock block;
        block.first = first;
        block.rows = std::min(blockRows, n_ - first);
        block.vectors = x_ + size_t(first) * d_;
        block.weights = weights_ ? weights_ + first : nullptr;
        if (!onDevice_) {
            // In the order of the stream, so behind the work on the last one.
            copyRows(context_, "x", block.vectors, block.rows, d_, blockCopy_);
            block.vectors = blockCopy_;
        }
        work(block);
    }
}

} // namespace faiss_bits::gpu::detail
