/// The sort of survivors: the last step of SampleThreshold for large k.

#include "kernels/survivors/SurvivorSortParams.h"
#include "tests/survivors/SurvivorSortHarness.h"

namespace faiss_bits::test {
namespace {

class SurvivorSort : public GpuTest {};

/// Both sides of what a block sorts, and of a bucket; also k above the count.
TEST_F(SurvivorSort, RowsOfEveryLength) {
    const int64_t room = kBucketRoom;
    for (int64_t count :
         {int64_t(1),
          int64_t(2049),
          room - 1,
          room,
          room + 1,
          int64_t(4095),
          int64_t(4096),
          int64_t(4097),
          2 * room,
          2 * room + 1,
          int64_t(20001)}) {
        SortCase c;
        c.rows = 3;
        c.cols = count + count / 3;
        c.counts = {count, count - 1, (count + 1) / 2};
        const SortData data(c);
        data.expectSorts(int(count + 1) / 2);
        data.expectSorts(int(count));
        data.expectSorts(int(count) + 5000);
    }
}

/// Rows whose counts differ: some sorted by a block, some empty.
TEST_F(SurvivorSort, CountsOfManySizes) {
    SortCase c;
    c.rows = 9;
    c.cols = 40000;
    c.counts = {30000, 0, 1, 3584, 3585, 2048, 17, 39999, 8192};
    for (bool sorted : {true, false}) {
        c.sorted = sorted;
        c.firstRow = sorted ? 0 : 3;
        const SortData data(c);
        data.expectSorts(2049);
        data.expectSorts(29990);
    }
}

TEST_F(SurvivorSort, EveryValueAndOrder) {
    for (Values values : kAllValues) {
        for (Order order : {Order::Shuffled, Order::BestFirst}) {
            SortCase c;
            c.rows = 2;
            c.cols = 60000;
            c.counts = {45000, 59999};
            c.values = values;
            c.order = order;
            c.largest = order == Order::BestFirst;
            SortData(c).expectSorts(44000);
        }
    }
    for (Extra extra :
         {Extra::Skewed, Extra::OneFarAway, Extra::ThousandKeys}) {
        for (Order order : {Order::Shuffled, Order::BestLast}) {
            SortCase c;
            c.rows = 2;
            c.cols = 60000;
            c.counts = {45000, 59999};
            c.extra = extra;
            c.order = order;
            SortData(c).expectSorts(44000);
        }
    }
}

TEST_F(SurvivorSort, KeysAndIdsOfEveryType) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (bool largest : {false, true}) {
            for (Values values :
                 {Values::Random,
                  Values::SomeNan,
                  Values::Denormals,
                  Values::SignedZeros,
                  Values::BothInfinities}) {
                SortCase c;
                c.rows = 3;
                c.cols = 30000;
                c.counts = {20000, 29000, 3000};
                c.values = values;
                c.keyType = type;
                c.idType = largest ? IdType::Int32 : IdType::Int64;
                c.largest = largest;
                c.sorted = values != Values::SomeNan;
                c.order = Order::ByColumn;
                SortData(c).expectSorts(19500);
            }
        }
    }
}

TEST_F(SurvivorSort, BiasedKeys) {
    SortCase c;
    c.rows = 2;
    c.cols = 20000;
    c.counts = {20000, 9000};
    c.bias = true;
    SortData(c).expectSorts(10000);
}

/// Buckets that no block can sort at once, down to all of a row in one.
TEST_F(SurvivorSort, OversizeBuckets) {
    for (uint32_t bucket : {5000u, 40000u}) {
        for (Values values :
             {Values::Random,
              Values::AllEqual,
              Values::FewDistinct,
              Values::Ascending}) {
            SortCase c;
            c.rows = 2;
            c.cols = 40000;
            c.counts = {35000, 3600};
            c.values = values;
            c.bucket = bucket;
            c.sorted = values != Values::Ascending;
            const SortData data(c);
            data.expectSorts(34000);
            data.expectSorts(2100);
        }
    }
}

/// Many small buckets: beyond what a block groups, beyond the nodes of the
/// tree that are in shared memory, and many levels of samples.
TEST_F(SurvivorSort, ManyBuckets) {
    for (int64_t count : {131072, 131073, 600000}) {
        for (Order order : {Order::Shuffled, Order::BestFirst}) {
            SortCase c;
            c.rows = 2;
            c.cols = count + 100;
            c.counts = {count, count / 7};
            c.order = order;
            c.bucket = 128;
            SortData(c).expectSorts(int(count) - 99);
        }
    }
}

/// Lists with room for more buckets than are grouped: some rows have so many
/// entries, and some have fewer.
TEST_F(SurvivorSort, FarMoreRoomThanEntries) {
    SortCase c;
    c.rows = 5;
    c.cols = 180000;
    c.bucket = 128;
    c.capacity = 200000;
    c.counts = {40000, 150000, 100, 131072, 131200};
    for (Order order : {Order::Shuffled, Order::BestLast}) {
        c.order = order;
        const SortData data(c);
        data.expectSorts(35000);
        data.expectSorts(149000);
    }
}

TEST_F(SurvivorSort, OneLongRow) {
    SortCase c;
    c.cols = 5100000;
    c.counts = {5000000};
    SortData(c).expectSorts(4900000);
    c.values = Values::FewDistinct;
    c.order = Order::ByColumn;
    SortData(c).expectSorts(4900000);
}

TEST_F(SurvivorSort, ManyRows) {
    SortCase c;
    c.rows = 1000;
    c.cols = 6000;
    c.counts = {5000, 4999, 5100, 4097};
    c.capacity = 5200;
    SortData(c).expectSorts(4800);
}

/// More memory than is sorted at a time: several passes over the rows, with
/// room for far more buckets than there are.
TEST_F(SurvivorSort, SeveralPasses) {
    SortCase c;
    c.rows = 10;
    c.capacity = (int64_t(1) << 26) / 3;
    if (!hasFreeMemory(size_t(c.rows) * c.capacity * 8 + (size_t(3) << 30))) {
        GTEST_SKIP() << "needs 5 GiB of device memory";
    }
    c.cols = 10000;
    c.counts = {9000, 3000, 10000, 4000};
    SortData(c).expectSorts(3000);
}

TEST_F(SurvivorSort, SmallRuns) {
    SortCase c;
    c.rows = 2;
    c.cols = 9000;
    c.counts = {8000, 2100};
    SortData(c).expectSorts(7000);
    c.values = Values::FewDistinct;
    SortData(c).expectSorts(7000);
    c.bucket = 5000;
    SortData(c).expectSorts(7000);
    c.bucket = 128;
    c.sorted = false;
    SortData(c).expectSorts(7000);
}

} // namespace
} // namespace faiss_bits::test
