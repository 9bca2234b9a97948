#include "faiss_bits/flat/FlatStorage.h"

#include <limits>
#include <vector>

#include <faiss/impl/FaissAssert.h>
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

// A FlatIndex that says it holds float32 has its tensor of vectors made of
// rawData32_, and leaves rawData16_ alone, until it clears both. So bfloat16
// lies in rawData16_ of one that has 0 dimensions: its tensor is [n, 0] and
// null. FAISS makes none like it, as its indexes have dimensions.
DataType typeOf(FlatIndex& data) {
    if (data.getDim() == 0) {
        return DataType::BFloat16;
    }
    return data.getUseFloat16() ? DataType::Float16 : DataType::Float32;
}

DeviceVector<char>& rawOf(FlatIndex& data) {
    return typeOf(data) == DataType::Float32 ? data.*memberOf(Raw32Tag())
                                             : data.*memberOf(Raw16Tag());
}

/// FlatIndex::reserve, whatever is stored. It also makes the tensor of vectors
/// anew, of those that are counted.
void reserveRows(FlatIndex& data, int d, idx_t capacity, cudaStream_t stream) {
    if (typeOf(data) == DataType::BFloat16) {
        rawOf(data).reserve(
                size_t(capacity) * d * sizeOf(DataType::BFloat16), stream);
    }
    data.reserve(size_t(capacity), stream);
}

void appendAs(
        DataType type,
        const GpuContext& context,
        DeviceVector<char>& raw,
        int d,
        const float* x,
        idx_t n) {
    PagedCall call(context);
    const int rows = call.input("x", x, size_t(d) * sizeof(float));
    PageLimits limits;
    limits.rows = n;
    limits.scratchBytesPerRow = size_t(d) * sizeOf(type);
    call.run(limits, [&](const Page& page) {
        const size_t bytes = size_t(page.rows) * limits.scratchBytesPerRow;
        auto rounded = allocTemporary(context, bytes);
        runFromFloat(
                type,
                page.as<const float>(rows),
                rounded.get(),
                page.rows * d,
                context.stream);
        raw.append(
                static_cast<const char*>(rounded.get()),
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

/// Norms of all vectors: the first `before` are copied if those of `stored`
/// vectors are there.
void fillNorms(
        const GpuContext& context,
        FlatIndex& data,
        int d,
        NormsTensor& norms,
        idx_t before,
        idx_t stored,
        idx_t total) {
    idx_t first = 0;
    if (before > 0 && isOurs(data, stored)) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                norms.data(),
                normsOf(data).data(),
                size_t(before) * sizeof(float),
                cudaMemcpyDeviceToDevice,
                context.stream));
        first = before;
    }
    const DataType type = typeOf(data);
    runSquaredNorms(
            rawOf(data).data() + size_t(first) * d * sizeOf(type),
            type,
            true,
            total - first,
            d,
            norms.data() + first,
            context.stream);
    if (hasRoomForGreatest(total)) {
        runGreatest(norms.data(), total, norms.data() + total, context.stream);
    }
}

} // namespace

FlatView viewOf(FlatIndex& data, DataType type) {
    FlatView view;
    view.n = data.getSize();
    view.dataType = typeOf(data);
    FAISS_THROW_IF_NOT_FMT(
            view.dataType == type,
            "the index has useBFloat16 = %d, but GpuIndexFlat::copyFrom of the "
            "base class has replaced its storage by one of another type: call "
            "GpuIndexBitsFlat::copyFrom, or reset()",
            int(type == DataType::BFloat16));
    view.vectors = rawOf(data).data();
    const NormsTensor& norms = normsOf(data);
    if (isOurs(data, view.n)) {
        view.norms = norms.data();
        view.greatestNorm = norms.data() + view.n;
    } else if (type == DataType::Float32 && norms.getSize(0) == view.n) {
        view.norms = norms.data();
    }
    return view;
}

void reserveVectors(
        FlatIndex& data,
        int d,
        idx_t capacity,
        cudaStream_t stream) {
    reserveRows(data, d, capacity, stream);
}

void appendVectors(
        const GpuContext& context,
        faiss::gpu::MemorySpace space,
        FlatIndex& data,
        int d,
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
    reserveRows(data, d, total, context.stream);
    const DataType type = typeOf(data);
    try {
        if (type != DataType::Float32) {
            appendAs(type, context, raw, d, x, n);
        } else {
            raw.append(
                    reinterpret_cast<const char*>(x),
                    size_t(n) * d * sizeof(float),
                    context.stream,
                    true /* reserve no more than this */);
        }
        fillNorms(context, data, d, norms, before, before, total);
    } catch (...) {
        raw.resize(sizeBefore, context.stream);
        throw;
    }
    data.*memberOf(CountTag()) = ImplSize(total);
    reserveRows(data, d, total, context.stream); // renews the tensors only
    normsOf(data) = std::move(norms);
}

void truncateVectors(
        const GpuContext& context,
        faiss::gpu::MemorySpace space,
        FlatIndex& data,
        int d,
        idx_t n) {
    const ImplSize before = data.*memberOf(CountTag());
    if (n >= before) {
        return;
    }
    NormsTensor norms;
    if (n > 0 && isOurs(data, before)) {
        try {
            NormsTensor fewer(
                    context.resources,
                    faiss::gpu::AllocInfo(
                            faiss::gpu::AllocType::FlatData,
                            context.device,
                            space,
                            context.stream),
                    {ImplSize(n + 1)});
            fillNorms(context, data, d, fewer, n, before, n);
            norms = std::move(fewer);
        } catch (const faiss::FaissException&) {
            // No memory for them.
        }
    }
    rawOf(data).resize(size_t(n) * d * sizeOf(typeOf(data)), context.stream);
    data.*memberOf(CountTag()) = ImplSize(n);
    reserveRows(data, d, n, context.stream); // renews the tensors only
    normsOf(data) = std::move(norms);
}

void rebuild(
        const GpuContext& context,
        faiss::gpu::MemorySpace space,
        std::unique_ptr<FlatIndex>& data,
        int d,
        DataType type,
        const float* x,
        idx_t n) {
    auto fresh = std::make_unique<FlatIndex>(
            context.resources,
            type == DataType::BFloat16 ? 0 : d,
            type == DataType::Float16,
            space);
    if (n > 0) {
        appendVectors(context, space, *fresh, d, x, n);
    }
    data = std::move(fresh);
}

} // namespace faiss_bits::gpu::detail
