/// What a caller may do with a GpuIndexBitsIVFScalarQuantizer, and what is
/// refused.

#include "tests/ivf/ScalarHarness.h"

namespace faiss_bits::test {
namespace {

class IvfScalarCalls : public GpuTest {};

IvfCase someCase() {
    IvfCase c;
    c.n = 900;
    c.d = 12;
    c.nlist = 11;
    c.q = 60;
    return c;
}

TEST_F(IvfScalarCalls, SmallParametersAndGivenLists) {
    for (int64_t q : {5, 120}) {
        IvfCase c = someCase();
        c.q = q;
        expectParametersAndGivenLists(
                makeScalar(c, ScalarQuantizer::QT_4bit, true));
    }
}

TEST_F(IvfScalarCalls, SmallCaptured) {
    for (int64_t q : {2, 300}) {
        IvfCase c = someCase();
        c.q = q;
        expectCaptured(makeScalar(c, ScalarQuantizer::QT_8bit, true));
    }
}

TEST_F(IvfScalarCalls, SmallBadArguments) {
    auto* resources = sharedResources();
    const auto type = ScalarQuantizer::QT_8bit;
    using Index = GpuIndexBitsIVFScalarQuantizer;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 0, 5, type); }, "dims", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 0, type); }, "nlist", "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 5, type, faiss::METRIC_L1); }, "metric"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { Index(nullptr, 4, 5, type); }, "provider"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, 4, 5, ScalarQuantizer::QuantizerType(99)); },
            "qtype",
            "99"));
    faiss::Index* noQuantizer = nullptr;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { Index(resources, noQuantizer, 4, 5, type); },
            "coarseQuantizer"));
    faiss::gpu::GpuIndexIVFScalarQuantizerConfig rows;
    rows.interleavedLayout = false;
    EXPECT_TRUE(faissThrowsNaming(
            [&] {
                Index(resources,
                      4,
                      5,
                      ScalarQuantizer::QT_6bit,
                      faiss::METRIC_L2,
                      true,
                      rows);
            },
            "interleavedLayout"));
    Index untrained(resources, 4, 5, type);
    float x[4] = {};
    float distance = 0;
    int64_t label = 0;
    EXPECT_THROW(
            untrained.search(1, x, 1, &distance, &label),
            faiss::FaissException);
    EXPECT_TRUE(
            faissThrowsNaming([&] { untrained.setNumProbes(0); }, "nprobe"));
}

} // namespace
} // namespace faiss_bits::test
