#include "faiss_bits/ivf/ListStorage.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <faiss/impl/FaissAssert.h>
#include <faiss/invlists/InvertedLists.h>

#include <faiss/gpu/impl/GpuScalarQuantizer.cuh>
#include <faiss/gpu/impl/IVFFlat.cuh>
#include <faiss/gpu/impl/IVFPQ.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfRemoval.h"
#include "kernels/ivf/ListCodes.h"

namespace faiss_bits::gpu::detail {

using faiss::gpu::IVFBase;
using faiss::gpu::IVFFlat;
using faiss::gpu::IVFPQ;

namespace {

/// Vectors of a list, up to which lengths of lists are counted.
constexpr idx_t kMostCounted = idx_t(1) << 16;

std::atomic<uint64_t> listLosses = 0;

/// Members of IVFBase that a class derived from it may name, read where they
/// are: whatever FAISS does to its lists is served.
struct Peek : IVFBase {
    static auto vectors() {
        return &Peek::deviceListDataPointers_;
    }
    static auto ids() {
        return &Peek::deviceListIndexPointers_;
    }
    static auto lengths() {
        return &Peek::deviceListLengths_;
    }
    static auto longest() {
        return &Peek::maxListLength_;
    }
    static auto isInterleaved() {
        return &Peek::interleavedLayout_;
    }
    static auto idsOnHost() {
        return &Peek::listOffsetToUserIndex_;
    }
    static auto listData() {
        return &Peek::deviceListData_;
    }
    static auto listIds() {
        return &Peek::deviceListIndices_;
    }
    static auto encodedBytes() {
        return &Peek::getGpuVectorsEncodingSize_;
    }
    static auto options() {
        return &Peek::indicesOptions_;
    }
    static auto hasResiduals() {
        return &Peek::useResidual_;
    }
    static auto centroids() {
        return &Peek::ivfCentroids_;
    }
};

/// The same of IVFFlat.
struct FlatPeek : IVFFlat {
    static auto scalarQuantizer() {
        return &FlatPeek::scalarQ_;
    }
};

/// What vectors of `index` are residuals of; nullptr: they are none.
const float* centroidsOf(const IVFBase& index) {
    if (!(index.*Peek::hasResiduals())) {
        return nullptr;
    }
    const auto& centroids = index.*Peek::centroids();
    FAISS_THROW_IF_NOT_FMT(
            idx_t(centroids.getSize(0)) == idx_t(index.getNumLists()) &&
                    idx_t(centroids.getSize(1)) == idx_t(index.getDim()),
            "the quantizer's centroids are [%lld, %lld] float32, but lists of "
            "residuals need [%lld, %lld]",
            (long long)centroids.getSize(0),
            (long long)centroids.getSize(1),
            (long long)index.getNumLists(),
            (long long)index.getDim());
    return centroids.data();
}

IvfLists listsOf(const IVFBase& index, faiss::gpu::IndicesOptions options) {
    const auto& lengths = index.*Peek::lengths();
    IvfLists lists;
    lists.numLists = idx_t(index.getNumLists());
    lists.d = int(index.getDim());
    lists.layout = index.*Peek::isInterleaved() ? ListLayout::Interleaved
                                                : ListLayout::Rows;
    lists.vectors = (index.*Peek::vectors()).data();
    lists.lengths = lengths.data();
    lists.lengths64 = sizeof(*lengths.data()) == sizeof(int64_t);
    lists.idKind = options == faiss::gpu::INDICES_64_BIT ? ListIds::Given64
            : options == faiss::gpu::INDICES_32_BIT      ? ListIds::Given32
                                                         : ListIds::Places;
    lists.ids = (index.*Peek::ids()).data();
    return lists;
}

/// To an array of as many elements; waits for the stream.
template <class Array, class T>
void copyToDevice(
        Array& array,
        const std::vector<T>& values,
        cudaStream_t stream) {
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            array.data(),
            values.data(),
            values.size() * sizeof(T),
            cudaMemcpyHostToDevice,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
}

/// The types that FAISS's GPU has.
ListCoding codingOf(faiss::ScalarQuantizer::QuantizerType type) {
    using faiss::ScalarQuantizer;
    switch (type) {
        case ScalarQuantizer::QT_fp16:
            return ListCoding::Float16;
        case ScalarQuantizer::QT_8bit:
        case ScalarQuantizer::QT_8bit_uniform:
        case ScalarQuantizer::QT_8bit_direct:
            return ListCoding::Scalar8;
        case ScalarQuantizer::QT_6bit:
            return ListCoding::Scalar6;
        case ScalarQuantizer::QT_4bit:
        case ScalarQuantizer::QT_4bit_uniform:
            return ListCoding::Scalar4;
        default:
            FAISS_THROW_FMT("qtype = %d is none of the GPU's", int(type));
    }
}

} // namespace

IvfLists floatListsOf(
        const IVFFlat& index,
        faiss::gpu::IndicesOptions options) {
    return listsOf(index, options);
}

IvfLists scalarListsOf(
        const IVFFlat& index,
        faiss::gpu::IndicesOptions options) {
    using faiss::ScalarQuantizer;
    IvfLists lists = listsOf(index, options);
    // FAISS's copy, which encodes and decodes: a caller may have changed the
    // index's own.
    const auto& quantizer = *(index.*FlatPeek::scalarQuantizer());
    lists.coding = codingOf(quantizer.qtype);
    ListDecoding& decoding = lists.decoding;
    if (lists.coding != ListCoding::Float16 &&
        quantizer.qtype != ScalarQuantizer::QT_8bit_direct) {
        const bool isUniform =
                quantizer.qtype == ScalarQuantizer::QT_8bit_uniform ||
                quantizer.qtype == ScalarQuantizer::QT_4bit_uniform;
        decoding.ranges = isUniform ? 1 : lists.d;
        decoding.trained = quantizer.gpuTrained.data();
        // Of all types FAISS divides for this one alone.
        decoding.byInverse = quantizer.qtype != ScalarQuantizer::QT_4bit;
    }
    decoding.centroids = centroidsOf(index);
    return lists;
}

IvfLists productListsOf(
        const IVFPQ& index,
        faiss::gpu::IndicesOptions options,
        int bitsPerCode) {
    IvfLists lists = listsOf(index, options);
    lists.coding = ListCoding::Product;
    // It changes nothing, but is not const.
    const auto codebook = const_cast<IVFPQ&>(index).getPQCentroids();
    ListDecoding& decoding = lists.decoding;
    decoding.numParts = int(codebook.getSize(0));
    decoding.partBits = bitsPerCode;
    decoding.codebook = codebook.data();
    decoding.centroids = centroidsOf(index);
    return lists;
}

void copyProductLists(
        const IVFPQ& index,
        cudaStream_t stream,
        std::vector<float>& codebook,
        faiss::InvertedLists& lists) {
    auto& source = const_cast<IVFPQ&>(index); // which it does not change
    const auto onDevice = source.getPQCentroids();
    codebook.resize(size_t(onDevice.numElements()));
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            codebook.data(),
            onDevice.data(),
            codebook.size() * sizeof(float),
            cudaMemcpyDeviceToHost,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    source.copyInvertedListsTo(&lists);
}

idx_t mostVectorsOf(const IVFBase& index, idx_t nprobe, bool exact) {
    const idx_t numLists = idx_t(index.getNumLists());
    nprobe = std::min(nprobe, numLists);
    if (!exact) {
        return nprobe * longestOf(index);
    }
    const idx_t longest = longestOf(index);
    idx_t sum = 0;
    if (longest > kMostCounted) {
        std::vector<idx_t> lengths = lengthsOf(index);
        std::nth_element(
                lengths.begin(),
                lengths.begin() + (nprobe - 1),
                lengths.end(),
                std::greater<>());
        return std::accumulate(lengths.begin(), lengths.begin() + nprobe, sum);
    }
    // A search waits for this: lengths are counted, not sorted.
    std::vector<uint32_t> counts(size_t(longest) + 1);
    for (const auto& list : index.*Peek::listData()) {
        const auto length = idx_t(list->numVecs);
        FAISS_THROW_IF_NOT(length >= 0 && length <= longest);
        ++counts[size_t(length)];
    }
    idx_t left = nprobe;
    for (idx_t length = longest; length > 0 && left > 0; --length) {
        const idx_t some = std::min(left, idx_t(counts[size_t(length)]));
        sum += some * length;
        left -= some;
    }
    return sum;
}

uint64_t numListLosses() {
    return listLosses.load(std::memory_order_acquire);
}

void countListLoss() {
    listLosses.fetch_add(1, std::memory_order_acq_rel);
}

std::vector<idx_t> lengthsOf(const IVFBase& index) {
    std::vector<idx_t> lengths(size_t(index.getNumLists()));
    for (size_t l = 0; l < lengths.size(); ++l) {
        lengths[l] = idx_t(index.getListLength(int(l)));
    }
    return lengths;
}

const std::vector<std::vector<idx_t>>* hostIdsOf(const IVFBase& index) {
    return index.*Peek::options() == faiss::gpu::INDICES_CPU
            ? &(index.*Peek::idsOnHost())
            : nullptr;
}

void copyListsFrom(IVFBase& index, const faiss::InvertedLists* lists) {
    index.copyInvertedListsFrom(lists);
}

void shrinkLists(
        IVFBase& index,
        const IvfLists& lists,
        const std::vector<idx_t>& lengths,
        std::vector<std::vector<idx_t>> hostIds,
        cudaStream_t stream) {
    countListLoss();
    auto& onDevice = index.*Peek::lengths();
    using Length = std::remove_pointer_t<decltype(onDevice.data())>;
    const std::vector<Length> narrow(lengths.begin(), lengths.end());
    copyToDevice(onDevice, narrow, stream);
    const auto options = index.*Peek::options();
    const size_t idBytes = options == faiss::gpu::INDICES_64_BIT
            ? sizeof(int64_t)
            : options == faiss::gpu::INDICES_32_BIT ? sizeof(int32_t)
                                                    : 0;
    const bool mustBeZero = vectorsShareBytes(lists);
    idx_t longest = 0;
    for (size_t l = 0; l < lengths.size(); ++l) {
        const Length length = narrow[l];
        longest = std::max(longest, lengths[l]);
        auto& codes = *(index.*Peek::listData())[l];
        const size_t bytes = (index.*Peek::encodedBytes())(length);
        if (mustBeZero && bytes < codes.data.size()) {
            BITS_CUDA_CHECK(cudaMemsetAsync(
                    codes.data.data() + bytes,
                    0,
                    codes.data.size() - bytes,
                    stream));
        }
        codes.data.resize(bytes, stream);
        codes.numVecs = length;
        if (idBytes > 0) {
            auto& ids = *(index.*Peek::listIds())[l];
            ids.data.resize(size_t(length) * idBytes, stream);
            ids.numVecs = length;
        }
    }
    runIvfClearBehind(lists, stream);
    auto& idsOnHost = index.*Peek::idsOnHost();
    if (!hostIds.empty()) {
        idsOnHost = std::move(hostIds);
    } else if (options == faiss::gpu::INDICES_CPU) {
        for (size_t l = 0; l < lengths.size(); ++l) {
            idsOnHost[l].resize(size_t(lengths[l]));
        }
    }
    auto& greatest = index.*Peek::longest();
    greatest = std::remove_reference_t<decltype(greatest)>(longest);
}

void restoreLists(
        IVFBase& index,
        const IvfLists& lists,
        const std::vector<idx_t>& lengths,
        cudaStream_t stream) {
    std::vector<void*> vectors;
    std::vector<void*> ids;
    for (size_t l = 0; l < lengths.size(); ++l) {
        vectors.push_back((index.*Peek::listData())[l]->data.data());
        ids.push_back((index.*Peek::listIds())[l]->data.data());
    }
    copyToDevice(index.*Peek::vectors(), vectors, stream);
    copyToDevice(index.*Peek::ids(), ids, stream);
    shrinkLists(index, lists, lengths, {}, stream);
}

idx_t longestOf(const IVFBase& index) {
    return idx_t(index.*Peek::longest());
}

void replacePlaces(const IVFBase& index, idx_t n, idx_t* labels) {
    const auto& ids = index.*Peek::idsOnHost();
    for (idx_t i = 0; i < n; ++i) {
        if (labels[i] >= 0) {
            labels[i] = ids.at(size_t(labels[i] >> 32))
                                .at(size_t(labels[i] & 0xffffffff));
        }
    }
}

} // namespace faiss_bits::gpu::detail
