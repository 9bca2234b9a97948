/// Shards and replicas when the memory of one part is short.

#include <string>
#include <type_traits>

#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

template <class Many>
class ManyMemory : public GpuTest {};

TYPED_TEST_SUITE(ManyMemory, ManyKinds);

constexpr int kD = 9;

/// Three parts, of which one can be made to fail.
template <class Many>
struct FailingParts {
    explicit FailingParts(const GpuIndexBitsManyConfig& config, int failing = 1)
            : resources(std::make_shared<FailingResources>()),
              many(places(failing), kD, faiss::METRIC_L2, config),
              one(sharedResources(), kD, faiss::METRIC_L2) {
        const auto vectors = makeVectors(300, kD, 1, Fill::Integers);
        many.add(300, vectors.data());
        one.add(300, vectors.data());
    }

    DeviceList places(int failing) {
        faiss::gpu::GpuResourcesProviderFromInstance ofFailing(resources);
        DeviceList list;
        for (int part = 0; part < 3; ++part) {
            if (part == failing) {
                list.add(&ofFailing, 0);
            } else {
                list.add(partResources(part), 0);
            }
        }
        return list;
    }

    void expectIntact() const {
        ASSERT_EQ(many.ntotal, one.ntotal);
        for (int64_t q : {2, 40}) {
            const auto queries = makeVectors(q, kD, 2, Fill::Integers);
            ASSERT_TRUE(sameOutput(
                    searchOnHost(many, queries, 150),
                    searchOnHost(one, queries, 150)));
        }
        std::vector<float> got(one.ntotal * kD), want(got.size());
        many.reconstruct_n(0, one.ntotal, got.data());
        one.reconstruct_n(0, one.ntotal, want.data());
        ASSERT_EQ(got, want);
    }

    std::shared_ptr<FailingResources> resources;
    Many many;
    GpuIndexBitsFlat one;
};

/// Of a search the part that allocates, whatever the way: of replicas together
/// on a device the first one searches, of shards all do.
template <class Many>
int searchingPart(const GpuIndexBitsManyConfig& config) {
    const bool isFirst =
            std::is_same_v<Many, GpuIndexBitsReplicas> && config.joinSameDevice;
    return isFirst ? 0 : 1;
}

int secondPart(const GpuIndexBitsManyConfig&) {
    return 1;
}

/// Runs `call` with the first allocation of a part failing, then the second,
/// and so on, until it gets through. An index that has failed must be what it
/// was.
template <class Many, class Call>
void failEveryAllocation(
        const Call& call,
        int (*partOf)(const GpuIndexBitsManyConfig&) = secondPart) {
    for (const auto& config : waysOf()) {
        SCOPED_TRACE(nameOfWay(config));
        const int part = partOf(config);
        const std::string named = " " + std::to_string(part) + " of 3";
        bool failed = true;
        for (int i = 0; failed && i < 100; ++i) {
            FailingParts<Many> parts(config, part);
            parts.resources->failAfter(i);
            failed = false;
            try {
                call(parts.many);
            } catch (const faiss::FaissException& error) {
                failed = true;
                const std::string text = error.what();
                EXPECT_NE(text.find("says the test"), std::string::npos)
                        << text;
                EXPECT_NE(text.find("device 0"), std::string::npos) << text;
                EXPECT_NE(text.find(named), std::string::npos) << text;
            }
            parts.resources->failNever();
            EXPECT_TRUE(failed || i > 0) << "the call allocates nothing";
            if (failed) {
                parts.expectIntact();
                call(parts.many); // works again
            }
        }
        EXPECT_FALSE(failed) << "the call does not get through";
    }
}

TYPED_TEST(ManyMemory, SmallFailedSearch) {
    for (int64_t q : {2, 40}) {
        const auto queries = makeVectors(q, kD, 3, Fill::Integers);
        failEveryAllocation<TypeParam>(
                [&](const auto& index) { searchOnHost(index, queries, 20); },
                searchingPart<TypeParam>);
        failEveryAllocation<TypeParam>(
                [&](const auto& index) { searchOnDevice(index, queries, 20); },
                searchingPart<TypeParam>);
    }
}

TYPED_TEST(ManyMemory, SmallFailedAdd) {
    const auto more = makeVectors(90, kD, 4, Fill::Integers);
    failEveryAllocation<TypeParam>([&](auto& index) {
        const idx_t before = index.ntotal;
        index.add(90, more.data());
        ASSERT_EQ(index.ntotal, before + 90);
        std::vector<float> last(90 * kD);
        index.reconstruct_n(before, 90, last.data());
        ASSERT_EQ(last, more);
    });
}

/// After an addition that failed in one part the next one is numbered as if it
/// had never been.
TYPED_TEST(ManyMemory, SmallAddAfterAFailedOne) {
    for (const auto& config : waysOf()) {
        FailingParts<TypeParam> parts(config);
        const auto lost = makeVectors(60, kD, 5, Fill::Integers);
        parts.resources->failAfter(0);
        EXPECT_THROW(parts.many.add(60, lost.data()), faiss::FaissException);
        parts.resources->failNever();
        const auto more = makeVectors(75, kD, 6, Fill::Integers);
        parts.many.add(75, more.data());
        parts.one.add(75, more.data());
        parts.expectIntact();
    }
}

} // namespace
} // namespace faiss_bits::test
