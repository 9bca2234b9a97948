/// GpuIndexBitsFlat without its last vectors.

#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class Truncate : public GpuTest {};

FlatCase someCase() {
    FlatCase c;
    c.n = 500;
    c.d = 11;
    c.q = 30;
    c.fill = Fill::Integers;
    return c;
}

TEST_F(Truncate, SmallIsAnIndexOfTheFirst) {
    for (const FlatCase& kind : kindsOf(someCase())) {
        for (int64_t n : {0, 1, 333, 499, 500}) {
            const FlatData all(kind);
            const auto index = all.makeIndex();
            searchOnHost(*index, all.queries, 5); // makes what is kept
            index->truncate(n);
            ASSERT_EQ(index->ntotal, n);
            FlatCase fewer = kind;
            fewer.n = n;
            FlatData some(fewer);
            some.vectors.assign(
                    all.vectors.begin(), all.vectors.begin() + n * kind.d);
            some.expectExact(searchOnHost(*index, all.queries, 20), 20);
            index->add(500 - n, all.vectors.data() + n * kind.d);
            all.expectExact(searchOnHost(*index, all.queries, 20), 20);
        }
    }
}

TEST_F(Truncate, SmallWithoutMemory) {
    for (const FlatCase& kind : kindsOf(someCase())) {
        const FlatData all(kind);
        const auto resources = std::make_shared<FailingResources>();
        GpuIndexBitsFlat index(
                resources, kind.d, kind.metric, configOf(kind.storage));
        index.add(kind.n, all.vectors.data());
        resources->failAfter(0);
        index.truncate(200);
        resources->failNever();
        FlatCase fewer = kind;
        fewer.n = 200;
        FlatData some(fewer);
        some.vectors.assign(
                all.vectors.begin(), all.vectors.begin() + 200 * kind.d);
        some.expectExact(searchOnHost(index, all.queries, 20), 20);
        index.add(300, all.vectors.data() + 200 * kind.d);
        all.expectExact(searchOnHost(index, all.queries, 20), 20);
    }
}

TEST_F(Truncate, SmallBadArguments) {
    const FlatData data(someCase());
    const auto index = data.makeIndex();
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->truncate(-1); }, "numVecs", "-1"));
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->truncate(501); }, "numVecs", "501"));
    EXPECT_EQ(index->ntotal, 500);
}

} // namespace
} // namespace faiss_bits::test
