#include <climits>

#include "kernels/common/Error.h"
#include "kernels/ivf/IvfScratch.h"

namespace faiss_bits {

namespace {

/// Throws Error for what no list has.
void checkDecoding(const IvfLists& lists) {
    const ListDecoding& decoding = lists.decoding;
    BITS_THROW_IF_NOT_FMT(
            lists.coding >= ListCoding::Float32 &&
                    lists.coding <= ListCoding::Product,
            "lists.coding = %d is none",
            int(lists.coding));
    const bool isInterleaved = lists.layout == ListLayout::Interleaved;
    BITS_THROW_IF_NOT_FMT(
            isInterleaved || lists.coding != ListCoding::Scalar6,
            "lists.layout = %d: codes of 6 bits are interleaved (%d)",
            int(lists.layout),
            int(ListLayout::Interleaved));
    if (isScalar(lists.coding) && decoding.trained) {
        BITS_THROW_IF_NOT_FMT(
                decoding.ranges == 1 || decoding.ranges == lists.d,
                "lists.decoding.ranges = %d is neither 1 nor d = %d",
                decoding.ranges,
                lists.d);
    }
    if (lists.coding == ListCoding::Product) {
        BITS_THROW_IF_NOT_FMT(
                decoding.numParts >= 1 && lists.d % decoding.numParts == 0,
                "lists.decoding.numParts = %d does not divide d = %d",
                decoding.numParts,
                lists.d);
        BITS_THROW_IF_NOT_FMT(
                decoding.partBits == 8 ||
                        (isInterleaved && decoding.partBits >= 4 &&
                         decoding.partBits <= 8),
                "lists.decoding.partBits = %d: 8 are supported, or "
                "interleaved 4 to 8",
                decoding.partBits);
    }
}

} // namespace

void checkIvf(const IvfKnnProblem& p) {
    BITS_THROW_IF_NOT_FMT(
            p.metric == Metric::L2 || p.metric == Metric::InnerProduct,
            "metric = %d is neither L2 nor InnerProduct",
            int(p.metric));
    BITS_THROW_IF_NOT_FMT(
            p.lists.d >= 1, "lists.d = %d, at least 1 is needed", p.lists.d);
    BITS_THROW_IF_NOT_FMT(
            p.lists.numLists >= 1 && p.lists.numLists <= INT_MAX,
            "lists.numLists = %lld is outside 1..%d",
            (long long)p.lists.numLists,
            INT_MAX);
    checkDecoding(p.lists);
    BITS_THROW_IF_NOT_FMT(
            p.numQueries >= 0,
            "numQueries = %lld is negative",
            (long long)p.numQueries);
    BITS_THROW_IF_NOT_FMT(
            p.nprobe >= 1, "nprobe = %d, at least 1 is needed", p.nprobe);
    BITS_THROW_IF_NOT_FMT(
            p.k >= 1 && p.k < INT_MAX,
            "k = %d is outside 1..%d",
            p.k,
            INT_MAX - 1);
    BITS_THROW_IF_NOT_FMT(
            p.mostVectors >= 0 && p.mostVectors < INT_MAX - kIvfRowStep,
            "mostVectors = %lld is outside 0..%lld",
            (long long)p.mostVectors,
            (long long)(INT_MAX - kIvfRowStep - 1));
}

} // namespace faiss_bits
