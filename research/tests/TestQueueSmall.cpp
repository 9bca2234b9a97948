/// A subset small enough for compute-sanitizer (--gtest_filter=*Small*): every
/// kernel of the queue methods once.

#include "research/tests/TestQueueHarness.h"

namespace faiss_bits::test {
namespace {

class QueueSmall : public GpuTest {};

std::vector<SelectMethod> smallQueues(int partition, QueueMemory memory) {
    std::vector<QueueSelectOptions> list;
    for (QueueSelectOptions o : queuesAndBuffers()) {
        // Unbuffered, and both ways to flush a sorted buffer.
        if (!o.buffered || o.localSort) {
            o.partition = partition;
            o.memory = memory;
            o.threadsPerRow = 4;
            list.push_back(o);
        }
    }
    return methodsOf(list);
}

TEST_F(QueueSmall, Scan) {
    SelectCase c;
    c.rows = 3;
    c.cols = 1003;
    expectMethods(c, smallQueues(0, QueueMemory::Shared), {5, 20});
    expectMethods(c, smallQueues(0, QueueMemory::Global), {20});
}

TEST_F(QueueSmall, Descend) {
    SelectCase c;
    c.rows = 3;
    c.cols = 1003;
    c.keyType = DataType::Float16;
    expectMethods(c, smallQueues(4, QueueMemory::Shared), {5, 20});
    expectMethods(c, smallQueues(4, QueueMemory::Global), {20});
}

TEST_F(QueueSmall, Groups) {
    for (int partition : {2, 8, 16}) {
        QueueSelectOptions o;
        o.partition = partition;
        SelectCase c;
        c.rows = 2;
        c.cols = 701;
        c.keyType = DataType::BFloat16;
        c.largest = true;
        expectMethods(c, {methodOf(o)}, {10});
    }
}

TEST_F(QueueSmall, WarpsThatShareARow) {
    QueueSelectOptions o =
            queueSelectOptionsOf(ResearchAlgorithm::BufferedSearch);
    o.threadsPerRow = 64;
    SelectCase c;
    c.cols = 5001;
    c.values = Values::FewDistinct;
    expectMethods(c, {methodOf(o)}, {40});
    o.partition = 4;
    expectMethods(c, {methodOf(o)}, {40});
}

TEST_F(QueueSmall, Unaligned) {
    SelectCase c;
    c.rows = 2;
    c.cols = 999;
    c.padding = 1;
    c.outPadding = 1;
    c.shift = 1;
    expectMethods(c, namedQueueMethods(), {7});
}

TEST_F(QueueSmall, ShortRows) {
    for (int64_t cols : {0, 1, 33}) {
        SelectCase c;
        c.rows = 2;
        c.cols = cols;
        expectMethods(c, namedQueueMethods(), {1, 40});
    }
}

TEST_F(QueueSmall, BitonicSteps) {
    for (int k : {5, 200, 400, 1000, 1500}) {
        SelectCase c;
        c.cols = 2 * k + 1003;
        c.values = Values::SomeNan;
        std::vector<PartialBitonicOptions> steps = bitonicSteps();
        expectMethods(c, methodsOf(steps), {k});
    }
}

TEST_F(QueueSmall, BitonicBlocksThatShareARow) {
    PartialBitonicOptions o;
    o.blocksPerRow = 3;
    SelectCase c;
    c.rows = 2;
    c.cols = 5001;
    expectMethods(c, {methodOf(o)}, {10, 300});
}

} // namespace
} // namespace faiss_bits::test
