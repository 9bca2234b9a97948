#include "faiss_bits/flat/SelectorBits.h"

#include <algorithm>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/DeviceSelector.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/knn/filter/FilterBits.h"

namespace faiss_bits::gpu::detail {

using Kind = SelectorTree::Kind;

namespace {

/// Ids that are copied to the device at a time.
constexpr idx_t kIdsAtOnce = idx_t(1) << 23;

class Evaluation {
   public:
    Evaluation(idx_t n, const SelectorPlace& place) : n_(n), place_(place) {}

    void write(const SelectorTree& tree, uint32_t* bits) {
        switch (tree.kind) {
            case Kind::Range:
                return runRangeBits(
                        bits, n_, tree.first, tree.end, place_.stream);
            case Kind::Ids:
                return writeIds(tree, bits);
            case Kind::Bytes:
                return writeBytes(tree, bits);
            case Kind::Prepared:
                return copy(bits, tree.prepared->bits(), bytes());
            case Kind::Not:
                write(*tree.left, bits);
                return runInvertBits(bits, n_, place_.stream);
            case Kind::And:
                return writePair(BitOperation::And, tree, bits);
            case Kind::Or:
                return writePair(BitOperation::Or, tree, bits);
            case Kind::Xor:
                return writePair(BitOperation::Xor, tree, bits);
        }
    }

    /// Until no host memory is read any more.
    void finish() {
        if (readsOn_) {
            BITS_CUDA_CHECK(cudaStreamSynchronize(place_.stream));
        }
    }

   private:
    size_t bytes() const {
        return size_t(filterWords(n_)) * sizeof(uint32_t);
    }

    void copy(void* to, const void* from, size_t bytes) {
        if (bytes > 0) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    to, from, bytes, cudaMemcpyDefault, place_.stream));
        }
    }

    Place placeOfHost(const char* name, const void* data) {
        const Place place =
                placeOf({nullptr, place_.device, place_.stream}, name, data);
        readsOn_ = readsOn_ || (place.onHost && !place.pageable);
        return place;
    }

    void writeIds(const SelectorTree& tree, uint32_t* bits) {
        runRangeBits(bits, n_, 0, 0, place_.stream);
        if (tree.numIds == 0) {
            return;
        }
        const Place ids = placeOfHost("ids of an IDSelectorArray", tree.ids);
        if (!ids.onHost) {
            return runAddIdBits(bits, n_, tree.ids, tree.numIds, place_.stream);
        }
        const idx_t atOnce = std::min(tree.numIds, kIdsAtOnce);
        const auto staged = place_.allocate(atOnce * sizeof(idx_t));
        for (idx_t at = 0; at < tree.numIds; at += atOnce) {
            const idx_t count = std::min(atOnce, tree.numIds - at);
            copy(staged.get(), tree.ids + at, count * sizeof(idx_t));
            runAddIdBits(
                    bits,
                    n_,
                    static_cast<const idx_t*>(staged.get()),
                    count,
                    place_.stream);
        }
    }

    void writeBytes(const SelectorTree& tree, uint32_t* bits) {
        runRangeBits(bits, n_, 0, 0, place_.stream);
        if (tree.numBytes > 0) {
            placeOfHost("bitmap of an IDSelectorBitmap", tree.bytes);
            copy(bits, tree.bytes, tree.numBytes);
            runClearTail(bits, n_, place_.stream);
        }
    }

    void writePair(
            BitOperation operation,
            const SelectorTree& tree,
            uint32_t* bits) {
        write(*tree.left, bits);
        const auto other = place_.allocate(bytes());
        write(*tree.right, static_cast<uint32_t*>(other.get()));
        runCombineBits(
                operation,
                bits,
                static_cast<const uint32_t*>(other.get()),
                n_,
                place_.stream);
    }

    idx_t n_;
    const SelectorPlace& place_;
    bool readsOn_ = false;
};

} // namespace

void runSelectorBits(
        const SelectorTree& tree,
        idx_t n,
        uint32_t* bits,
        const SelectorPlace& place) {
    if (n == 0) {
        return;
    }
    Evaluation evaluation(n, place);
    evaluation.write(tree, bits);
    evaluation.finish();
}

void runSelectorIds(
        const uint32_t* bits,
        idx_t n,
        int32_t* ids,
        idx_t capacity,
        const SelectorPlace& place) {
    const size_t bytes = idsOfBitsWorkspaceBytes(n);
    const auto scratch = place.allocate(bytes);
    runIdsOfBits(bits, n, ids, capacity, {scratch.get(), bytes}, place.stream);
}

} // namespace faiss_bits::gpu::detail
