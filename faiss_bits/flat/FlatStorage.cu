#include "faiss_bits/flat/FlatStorage.h"

#include <limits>
#include <vector>

#include <faiss/gpu/impl/FlatIndex.cuh>

#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/flat/VectorKernels.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/knn/Norms.h"
#include "kernels/knn/certified/QueryKernels.h"

namespace faiss_bits::gpu::detail {

namespace {

using faiss::gpu::DeviceTensor;
using faiss::gpu::DeviceVector;
using faiss::gpu::FlatIndex;
using NormsTensor = DeviceTensor<float, 1, true>;

// FlatIndex computes squared norms and keeps them in step with its vectors,
// but has no accessor for them, and squares float16 components in float16,
// which overflows beyond 256. We use its norms, since a copy of ours could go
// stale: GpuIndexFlat::copyFrom is not virtual and replaces the vectors behind
// our back. We also fill them ourselves, in fp32, and need its count and raw
// storage to undo an addition that runs out of memory half way. Ours have one
// value more, the greatest of them: so their number says who filled them.
//
// Access rules do not apply to the arguments of an explicit instantiation
// ([temp.spec.general]/6), which makes this the way that the standard allows.
template <class Tag, typename Tag::Type Member>
struct Expose {
    friend constexpr typename Tag::Type memberOf(Tag) {
        return Member;
    }
};

struct NormsTag {
    using Type = NormsTensor FlatIndex::*;
    friend constexpr Type memberOf(NormsTag);
};
struct Raw32Tag {
    using Type = DeviceVector<char> FlatIndex::*;
    friend constexpr Type memberOf(Raw32Tag);
};
struct Raw16Tag {
    using Type = DeviceVector<char> FlatIndex::*;
    friend constexpr Type memberOf(Raw16Tag);
};
struct CountTag {
    using Type = ImplSize FlatIndex::*;
    friend constexpr Type memberOf(CountTag);
};

template struct Expose<NormsTag, &FlatIndex::norms_>;
template struct Expose<Raw32Tag, &FlatIndex::rawData32_>;
template struct Expose<Raw16Tag, &FlatIndex::rawData16_>;
template struct Expose<CountTag, &FlatIndex::num_>;

NormsTensor& normsOf(FlatIndex& data) {
    return data.*memberOf(NormsTag());
}

DeviceVector<char>& rawOf(FlatIndex& data) {
    return data.getUseFloat16() ? data.*memberOf(Raw16Tag())
                                : data.*memberOf(Raw32Tag());
}

void appendAsHalf(
        const GpuContext& context,
        DeviceVector<char>& raw,
        int d,
        const float* x,
        idx_t n) {
    PagedCall call(context);
    const int rows = call.input("x", x, size_t(d) * sizeof(float));
    PageLimits limits;
    limits.rows = n;
    limits.scratchBytesPerRow = size_t(d) * sizeof(half);
    call.run(limits, [&](const Page& page) {
        const size_t bytes = size_t(page.rows) * limits.scratchBytesPerRow;
        auto halves = allocTemporary(context, bytes);
        runFloatToHalf(
                page.as<const float>(rows),
                halves.get(),
                page.rows * d,
                context.stream);
        raw.append(
                static_cast<const char*>(halves.get()),
                bytes,
                context.stream,
                true /* reserve no more than this */);
    });
}

/// Sizes of tensors are int up to FAISS 1.7.3.
bool hasRoomForGreatest(idx_t n) {
    return n < std::numeric_limits<ImplSize>::max();
}

bool isOurs(FlatIndex& data, idx_t n) {
    return normsOf(data).getSize(0) == n + 1;
}

/// Norms of all vectors: the first `before` are copied if they are there.
void fillNorms(
        const GpuContext& context,
        FlatIndex& data,
        NormsTensor& norms,
        idx_t before,
        idx_t total) {
    idx_t first = 0;
    if (before > 0 && isOurs(data, before)) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                norms.data(),
                normsOf(data).data(),
                size_t(before) * sizeof(float),
                cudaMemcpyDeviceToDevice,
                context.stream));
        first = before;
    }
    const bool isHalf = data.getUseFloat16();
    const size_t rowBytes =
            size_t(data.getDim()) * (isHalf ? sizeof(half) : sizeof(float));
    runSquaredNorms(
            rawOf(data).data() + size_t(first) * rowBytes,
            isHalf ? DataType::Float16 : DataType::Float32,
            true,
            total - first,
            data.getDim(),
            norms.data() + first,
            context.stream);
    if (hasRoomForGreatest(total)) {
        runGreatest(norms.data(), total, norms.data() + total, context.stream);
    }
}

} // namespace

FlatView viewOf(FlatIndex& data) {
    FlatView view;
    view.n = data.getSize();
    if (data.getUseFloat16()) {
        view.vectors = data.getVectorsFloat16Ref().data();
        view.dataType = DataType::Float16;
    } else {
        view.vectors = data.getVectorsFloat32Ref().data();
    }
    const NormsTensor& norms = normsOf(data);
    if (isOurs(data, view.n)) {
        view.norms = norms.data();
        view.greatestNorm = norms.data() + view.n;
    } else if (!data.getUseFloat16() && norms.getSize(0) == view.n) {
        view.norms = norms.data();
    }
    return view;
}

void reserveVectors(FlatIndex& data, idx_t capacity, cudaStream_t stream) {
    data.reserve(size_t(capacity), stream);
}

void appendVectors(
        const GpuContext& context,
        faiss::gpu::MemorySpace space,
        FlatIndex& data,
        const float* x,
        idx_t n) {
    const ImplSize before = data.*memberOf(CountTag());
    const idx_t total = before + n;
    DeviceVector<char>& raw = rawOf(data);
    const size_t sizeBefore = raw.size();

    // Memory that is not pageable may be read until the stream is done, also
    // if something throws.
    const Place place = placeOf(context, "x", x);
    std::vector<cudaStream_t> reading;
    if (place.onHost && !place.pageable) {
        reading.push_back(context.stream);
    }
    const ScopedWait wait(reading);

    // All memory is taken before anything changes.
    NormsTensor norms(
            context.resources,
            faiss::gpu::AllocInfo(
                    faiss::gpu::AllocType::FlatData,
                    context.device,
                    space,
                    context.stream),
            {ImplSize(hasRoomForGreatest(total) ? total + 1 : total)});
    data.reserve(size_t(total), context.stream);
    try {
        if (data.getUseFloat16()) {
            appendAsHalf(context, raw, data.getDim(), x, n);
        } else {
            raw.append(
                    reinterpret_cast<const char*>(x),
                    size_t(n) * data.getDim() * sizeof(float),
                    context.stream,
                    true /* reserve no more than this */);
        }
        fillNorms(context, data, norms, before, total);
    } catch (...) {
        raw.resize(sizeBefore, context.stream);
        throw;
    }
    data.*memberOf(CountTag()) = ImplSize(total);
    data.reserve(size_t(total), context.stream); // renews the tensors only
    normsOf(data) = std::move(norms);
}

void rebuild(
        const GpuContext& context,
        faiss::gpu::MemorySpace space,
        std::unique_ptr<FlatIndex>& data,
        int d,
        bool useFloat16,
        const float* x,
        idx_t n) {
    auto fresh = std::make_unique<FlatIndex>(
            context.resources, d, useFloat16, space);
    if (n > 0) {
        appendVectors(context, space, *fresh, x, n);
    }
    data = std::move(fresh);
}

} // namespace faiss_bits::gpu::detail
