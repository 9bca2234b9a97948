/// Partial bitonic sort, every step and option: blocks that share a row, and
/// the orders that suit the buffer least.

#include "research/tests/TestQueueHarness.h"

namespace faiss_bits::test {
namespace {

std::vector<SelectMethod> bitonicMethods(int blocksPerRow) {
    std::vector<PartialBitonicOptions> list = bitonicSteps();
    for (PartialBitonicOptions& o : list) {
        o.blocksPerRow = blocksPerRow;
    }
    return methodsOf(list);
}

class QueueBitonicShapes : public GpuTest {};

TEST_F(QueueBitonicShapes, BlocksPerRow) {
    // Also more blocks than columns, and partial results that take further
    // passes to merge.
    for (int blocks : {1, 2, 7, 500}) {
        for (int64_t cols : {3, 5000, 200000}) {
            SelectCase c;
            c.rows = 2;
            c.cols = cols;
            c.values = Values::FewDistinct;
            expectMethods(c, bitonicMethods(blocks), {1, 600});
        }
    }
}

TEST_F(QueueBitonicShapes, WorstOrder) {
    for (Values values : {Values::Descending, Values::Ascending}) {
        SelectCase c;
        c.rows = 2;
        c.cols = 40000;
        c.values = values;
        expectMethods(c, bitonicMethods(1), {10, 257, 2048});
    }
}

} // namespace
} // namespace faiss_bits::test
