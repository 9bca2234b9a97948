#include "kernels/knn/fused/tensor/AllowedVectors.h"

#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/tensor/ListedImage.h"

namespace faiss_bits {

AllowedVectors::AllowedVectors(
        const FlatKnnProblem& problem,
        const SearchImage& image,
        bool ofStrips,
        WorkspaceSlices& slices)
        : problem_(problem), image_(image) {
    if (problem.allowedBits && ofStrips) {
        const TensorImageLayout second(image.secondSamples, problem.d);
        if (problem.metric == Metric::InnerProduct) {
            pieces_ = slices.take<uint8_t>(second.pieceBytes());
        } else {
            norms_ = slices.take<float>(second.capacity);
            normSteps_ = slices.take<uint16_t>(second.capacity * 16);
        }
        if (takesBytes(problem) && !scansList(problem)) {
            members_ = slices.take<uint32_t>(1);
        }
    }
    if (scansList(problem)) {
        listed_ = slices.take<uint8_t>(
                tensorImageBytes(problem.numAllowed, problem.d, false));
        if (ofStrips && takesBytes(problem)) {
            listedBytes_ = slices.take<uint8_t>(
                    byteImageBytes(problem.numAllowed, problem.d, false));
        }
        made_ = slices.take<uint32_t>(2);
    }
}

void AllowedVectors::begin(cudaStream_t stream) const {
    if (pieces_) {
        runAllowedRows(
                image_.second,
                problem_.d,
                image_.secondIds,
                image_.secondSamples,
                problem_.allowedBits,
                secondSample(),
                stream);
    }
    if (norms_) {
        runAllowedNorms(
                image_.second,
                image_.secondIds,
                image_.secondSamples,
                problem_.allowedBits,
                secondSample(),
                members_,
                stream);
    }
}

TensorImage AllowedVectors::secondSample() const {
    TensorImage second = image_.second;
    if (norms_) {
        second.norms = norms_;
        second.normSteps = normSteps_;
    }
    if (pieces_) {
        second.pieces = pieces_;
    }
    return second;
}

void AllowedVectors::describe(ByteSearch& bytes) const {
    bytes.allowed = members_;
    bytes.members = uint32_t(image_.secondSamples);
}

void AllowedVectors::copyListed(
        const ByteSearch& bytes,
        idx_t queries,
        cudaStream_t stream) {
    ListedImages images;
    images.from = image_.image;
    images.to = listed();
    images.rows = image_.rows;
    images.d = problem_.d;
    images.ids = problem_.allowedIds;
    images.n = problem_.numAllowed;
    if (bytes.facts) {
        constexpr idx_t kTile = ByteSearch::kTileQueries;
        images.fromBytes = image_.bytes;
        images.toBytes = listedBytes();
        images.costs = bytes.costs;
        images.mostCost = bytes.mostCost;
        images.tiles = uint32_t((queries + kTile - 1) / kTile);
    }
    images.made = copies_ > 0 ? made_ + (copies_ - 1) % 2 : nullptr;
    images.makes = made_ + copies_ % 2;
    ++copies_;
    runListedImages(images, stream);
}

TensorImage AllowedVectors::listed() const {
    TensorImage image =
            tensorImageAt(listed_, problem_.numAllowed, problem_.d, false);
    image.facts = image_.image.facts; // scales are those of all
    return image;
}

ByteImage AllowedVectors::listedBytes() const {
    ByteImage image =
            byteImageAt(listedBytes_, problem_.numAllowed, problem_.d, false);
    image.facts = image_.bytes.facts;
    return image;
}

} // namespace faiss_bits
