/// FAISS's scans of inverted lists of product codes, defined on our kernels.

#include <string>

#include "faiss_bits/dropin/ListCall.h"
#include "faiss_bits/dropin/Replacement.h"
#include "kernels/common/Error.h"

namespace faiss_bits::dropin {

namespace {

/// Of FAISS's tensors: this file is compiled for each (CMakeLists.txt).
using Index = FAISS_BITS_DROPIN_INDEX;

using faiss::gpu::Cube;
using faiss::gpu::Matrix;

constexpr int kMostParts = 1 << 16;

struct ProductCall {
    ListCall<Index> lists;
    Matrix<float, Index>& centroids;
    Cube<float, Index>& codebook; // [parts, components, codes]
    bool interleaved;
    int bitsOfPart;
    int numParts;
    int codesOfPart;
};

/// What of codebook and centroids is not as FAISS has them, or as we have
/// kernels for.
void checkProduct(const ProductCall& c, ListRequest& r) {
    const auto& book = c.codebook.size_;
    const bool isCodebook = c.numParts >= 1 && c.numParts <= kMostParts &&
            c.bitsOfPart >= 1 && c.bitsOfPart <= 16 &&
            c.codesOfPart == 1 << c.bitsOfPart && book[0] == c.numParts &&
            idx_t(book[0]) * book[1] == r.lists.d && book[2] == c.codesOfPart &&
            c.codebook.data_;
    if (!isCodebook) {
        r.mismatch = "a codebook is " + shapeText(book[0], book[1]) + " x " +
                std::to_string(book[2]) + ", expected " +
                std::to_string(c.numParts) + " parts of " +
                std::to_string(r.lists.d) + " dimensions of " +
                std::to_string(c.bitsOfPart) + " bits";
        return;
    }
    const auto& centers = c.centroids.size_;
    if (centers[0] != r.lists.numLists || centers[1] != r.lists.d ||
        !c.centroids.data_) {
        r.mismatch = "centroids are " + shapeText(centers[0], centers[1]) +
                ", expected " + shapeText(r.lists.numLists, r.lists.d);
        return;
    }
    if (!isDense(c.centroids.size_, c.centroids.stride_) ||
        !isDense(c.codebook.size_, c.codebook.stride_)) {
        r.left = "scans of tensors with gaps between their rows";
        return;
    }
    if (c.bitsOfPart != 8 &&
        (!c.interleaved || c.bitsOfPart < 4 || c.bitsOfPart > 8)) {
        r.left = "scans of product codes of " + std::to_string(c.bitsOfPart) +
                " bits";
    }
}

/// A search that FAISS would do with tables made before. What tables are made
/// of is known to its search without them alone; so that one is called, as far
/// as the scan that we define.
class Attempt {
   public:
    Attempt() : outer_(current_) {
        current_ = this;
    }
    ~Attempt() {
        current_ = outer_;
    }
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

    /// Of this thread, which calls the scan for it; or nullptr.
    static Attempt* current() {
        return current_;
    }

    /// The scan was called. Keeps what it throws.
    template <class F>
    void scan(const F& search) {
        wasScanned_ = true;
        try {
            left_ = search();
        } catch (const std::exception& error) {
            error_ = error.what();
        }
    }

    /// What is left to FAISS, if anything. Throws Error for what could not be
    /// done.
    std::string result() const {
        if (!wasScanned_) {
            throw Error("FAISS did not call its scan of product codes");
        }
        if (!error_.empty()) {
            throw Error(error_);
        }
        return left_;
    }

   private:
    static thread_local Attempt* current_;

    Attempt* outer_;
    bool wasScanned_ = false;
    std::string left_;
    std::string error_;
};

thread_local Attempt* Attempt::current_ = nullptr;

ListRequest makeProductRequest(const ProductCall& c) {
    ListRequest r = makeRequest(
            c.lists,
            c.interleaved ? ListLayout::Interleaved : ListLayout::Rows);
    if (r.left.empty() && r.mismatch.empty()) {
        checkProduct(c, r);
    }
    r.lists.coding = ListCoding::Product;
    r.lists.decoding.numParts = c.numParts;
    r.lists.decoding.partBits = c.bitsOfPart;
    r.lists.decoding.centroids = c.centroids.data_;
    r.codebook = c.codebook.data_;
    r.hasTables = Attempt::current() != nullptr;
    return r;
}

/// IVFPQ::runPQNoPrecomputedCodes_
constexpr const char* kSearchWithoutTables = sizeof(Index) == 4
        ? "_ZN5faiss3gpu5IVFPQ24runPQNoPrecomputedCodes_ERNS0_6TensorIfLi2ELb1E"
          "iNS0_6traits16DefaultPtrTraitsEEES6_RNS2_IlLi2ELb1EiS4_EEiS6_S8_"
        : "_ZN5faiss3gpu5IVFPQ24runPQNoPrecomputedCodes_ERNS0_6TensorIfLi2ELb1E"
          "lNS0_6traits16DefaultPtrTraitsEEES6_RNS2_IlLi2ELb1ElS4_EEiS6_S8_";

} // namespace

} // namespace faiss_bits::dropin

// ---- the functions themselves ----------------------------------------------

namespace faiss::gpu {

using namespace faiss_bits::dropin;

/// How FAISS makes its tables changes nothing of our result.
template <>
void runPQScanMultiPassNoPrecomputed<float>(
        Matrix<float, Index>& queries,
        Matrix<float, Index>& centroids,
        Cube<float, Index>& codebook,
        Matrix<float, Index>& listDistances,
        Matrix<int64_t, Index>& listIds,
        bool useFloat16Tables,
        bool useProducts,
        bool interleaved,
        int bitsOfPart,
        int numParts,
        int codesOfPart,
        DeviceVector<void*>& listCodes,
        DeviceVector<void*>& listIndices,
        IndicesOptions indicesOptions,
        DeviceVector<Index>& listLengths,
        Index maxListLength,
        int k,
        MetricType metric,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>& outIndices,
        GpuResources* resources) {
    const ProductCall c{
            {queries,
             listIds,
             listCodes,
             listIndices,
             indicesOptions,
             listLengths,
             k,
             metric,
             outDistances,
             outIndices,
             resources},
            centroids,
            codebook,
            interleaved,
            bitsOfPart,
            numParts,
            codesOfPart};
    const ListRequest request = makeProductRequest(c);
    const auto work = [&](const Original& original) {
        return request.left.empty()
                ? searchLists(request, streamOf(original, resources))
                : request.left;
    };
    static auto& own = *new Replacement(describeProductScan<Index>());
    if (Attempt* attempt = Attempt::current()) {
        attempt->scan([&] {
            const std::string refusal = refusalOf(request);
            if (!refusal.empty()) {
                throw faiss_bits::Error(refusal);
            }
            return work(own.original());
        });
        return;
    }
    own.call<ProductScanFunction<Index>>(
            refusalOf(request),
            work,
            queries,
            centroids,
            codebook,
            listDistances,
            listIds,
            useFloat16Tables,
            useProducts,
            interleaved,
            bitsOfPart,
            numParts,
            codesOfPart,
            listCodes,
            listIndices,
            indicesOptions,
            listLengths,
            maxListLength,
            k,
            metric,
            outDistances,
            outIndices,
            resources);
}

void IVFPQ::runPQPrecomputedCodes_(
        Matrix<float, Index>& queries,
        Matrix<float, Index>& listDistances,
        Matrix<int64_t, Index>& listIds,
        int k,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>& outIndices) {
    using Search = ProductSearchFunction<Index>;
    const auto work = [&](const Original& original) {
        auto* search = reinterpret_cast<Search*>(
                symbolBehind(original, kSearchWithoutTables));
        if (!search) {
            throw faiss_bits::Error(
                    std::string("FAISS has no ") + kSearchWithoutTables);
        }
        const Attempt attempt;
        search(this,
               queries,
               listDistances,
               listIds,
               k,
               outDistances,
               outIndices);
        return attempt.result();
    };
    static auto& own = *new Replacement(describeProductSearch<Index>());
    own.call<Search>(
            "",
            work,
            this,
            queries,
            listDistances,
            listIds,
            k,
            outDistances,
            outIndices);
}

} // namespace faiss::gpu
