/// selectK: the selection on host and device memory, with FAISS's resources.

#include "faiss_bits/select/GpuBitsSelect.h"
#include "kernels/select/Select.h"
#include "tests/common/Cases.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

using gpu::GpuSelectParams;

struct SelectKCase {
    int64_t rows = 3;
    int64_t cols = 1000;
    int k = 10;
    bool largest = false;
    DataType keyType = DataType::Float32;
    bool withIds = false;
    IdType idType = IdType::Int64;
    Values values = Values::Random;
    bool onDevice = false;
    bool sorted = true;
    SelectAlgorithm algorithm = SelectAlgorithm::Auto;
};

class SelectK : public GpuTest {
   protected:
    static void expectSelects(const SelectKCase& c) {
        SCOPED_TRACE(
                ::testing::Message()
                << c.rows << " x " << c.cols << " k=" << c.k
                << " largest=" << c.largest << " " << nameOf(c.keyType)
                << " ids=" << c.withIds << int(c.idType) << " "
                << nameOf(c.values) << " onDevice=" << c.onDevice
                << " sorted=" << c.sorted << " " << nameOf(c.algorithm));
        std::mt19937 random(7);
        std::vector<float> keys;
        std::vector<int64_t> ids;
        for (int64_t r = 0; r < c.rows; ++r) {
            const auto row = makeRow(c.values, c.cols, c.keyType, random);
            keys.insert(keys.end(), row.begin(), row.end());
            const auto rowIds =
                    makeIds(c.cols, c.idType == IdType::Int32, random);
            ids.insert(ids.end(), rowIds.begin(), rowIds.end());
        }
        roundAllTo(c.keyType, keys);
        const auto keyBytes = packAs(c.keyType, keys);
        const auto idBytes = packIds(c.idType, ids);
        std::vector<uint8_t> outKeys(c.rows * c.k * sizeOf(c.keyType), 0xEE);
        std::vector<uint8_t> outIds(c.rows * c.k * sizeOf(c.idType), 0xEE);

        GpuSelectParams params;
        params.rows = c.rows;
        params.cols = c.cols;
        params.k = c.k;
        params.largest = c.largest;
        params.sorted = c.sorted;
        params.algorithm = c.algorithm;
        params.keyType = c.keyType;
        params.idType = c.idType;
        if (c.onDevice) {
            const DeviceBuffer<uint8_t> deviceKeys(keyBytes);
            const DeviceBuffer<uint8_t> deviceIds(idBytes);
            const DeviceBuffer<uint8_t> deviceOutKeys(outKeys);
            const DeviceBuffer<uint8_t> deviceOutIds(outIds);
            params.keys = deviceKeys.data();
            params.ids = c.withIds ? deviceIds.data() : nullptr;
            params.outKeys = deviceOutKeys.data();
            params.outIds = deviceOutIds.data();
            gpu::selectK(sharedResources(), params);
            outKeys = deviceOutKeys.download();
            outIds = deviceOutIds.download();
        } else {
            params.keys = keyBytes.data();
            params.ids = c.withIds ? idBytes.data() : nullptr;
            params.outKeys = outKeys.data();
            params.outIds = outIds.data();
            gpu::selectK(sharedResources(), params);
        }

        auto gotKeys = unpackFrom(c.keyType, outKeys);
        auto gotIds = unpackIds(c.idType, outIds);
        const float sentinel = c.largest ? -maxOf(c.keyType) : maxOf(c.keyType);
        for (int64_t r = 0; r < c.rows; ++r) {
            RowOfKeys row;
            row.keys = keys.data() + r * c.cols;
            row.cols = c.cols;
            row.ids = c.withIds ? ids.data() + r * c.cols : nullptr;
            const auto expected =
                    topKOfRow(row.keys, c.cols, row.ids, 0, c.k, c.largest);
            if (!c.sorted) {
                sortResult(
                        gotKeys.data() + r * c.k,
                        gotIds.data() + r * c.k,
                        c.k,
                        c.largest,
                        row);
            }
            ASSERT_TRUE(isTopKOfRow(
                    row,
                    expected,
                    gotKeys.data() + r * c.k,
                    gotIds.data() + r * c.k,
                    c.k,
                    sentinel))
                    << "row " << r;
        }
    }
};

TEST_F(SelectK, SmallEveryOption) {
    SelectKCase c;
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int bits = 0; bits < 32; ++bits) {
            c.keyType = type;
            c.largest = bits & 1;
            c.sorted = !(bits & 2);
            c.withIds = bits & 4;
            c.idType = bits & 8 ? IdType::Int32 : IdType::Int64;
            c.onDevice = bits & 16;
            expectSelects(c);
        }
    }
}

TEST_F(SelectK, ShapesAndK) {
    SelectKCase c;
    for (bool onDevice : {false, true}) {
        c.onDevice = onDevice;
        for (int64_t rows : {1, 100}) {
            c.rows = rows;
            for (int64_t cols : {0, 1, 31, 5000}) {
                c.cols = cols;
                for (int k : {1, 33, 2048, 2049}) {
                    c.k = k;
                    expectSelects(c);
                }
            }
        }
    }
    c.rows = 2;
    c.cols = 300000;
    c.k = 100;
    expectSelects(c);
}

TEST_F(SelectK, EveryKindOfValue) {
    SelectKCase c;
    c.rows = 4;
    c.cols = 2000;
    c.k = 60;
    for (Values values : kAllValues) {
        c.values = values;
        for (bool largest : {false, true}) {
            c.largest = largest;
            expectSelects(c);
        }
    }
}

TEST_F(SelectK, SmallEveryAlgorithmByItsNumber) {
    SelectKCase c;
    c.values = Values::FewDistinct;
    c.k = 200;
    std::vector<SelectAlgorithm> all = selectAlgorithms();
    all.push_back(SelectAlgorithm::Auto);
    for (SelectAlgorithm algorithm : all) {
        c.algorithm = algorithm;
        for (bool onDevice : {false, true}) {
            c.onDevice = onDevice;
            for (bool sorted : {true, false}) {
                c.sorted = sorted;
                expectSelects(c);
            }
        }
    }
}

TEST_F(SelectK, KBeyond2048) {
    SelectKCase c;
    c.rows = 4;
    c.cols = 9000;
    for (bool onDevice : {false, true}) {
        c.onDevice = onDevice;
        for (DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            c.keyType = type;
            for (int k : {2049, 5000, 9000, 10000}) {
                c.k = k;
                expectSelects(c);
            }
        }
    }
}

/// Host rows that do not fit a page: 60 MB of keys.
TEST_F(SelectK, PagedHostRows) {
    faiss::gpu::StandardGpuResources resources;
    resources.setPinnedMemory(0);
    resources.setTempMemory(size_t(8) << 20); // pages of 16 MiB
    const int64_t rows = 50;
    const int64_t cols = 300000; // 1.2 MB a row, 13 rows a page
    std::vector<float> keys(rows * cols);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
            // The smallest of row r is 0 at column r, then 1 at r + 1, ...
            keys[r * cols + c] = float((c - r + cols) % cols);
        }
    }
    const int k = 40;
    std::vector<float> outKeys(rows * k);
    std::vector<int64_t> outIds(rows * k);
    GpuSelectParams params;
    params.rows = rows;
    params.cols = cols;
    params.k = k;
    params.keys = keys.data();
    params.outKeys = outKeys.data();
    params.outIds = outIds.data();
    gpu::selectK(&resources, params);
    for (int64_t r = 0; r < rows; ++r) {
        for (int j = 0; j < k; ++j) {
            ASSERT_EQ(outKeys[r * k + j], float(j));
            ASSERT_EQ(outIds[r * k + j], r + j);
        }
    }
}

/// Resources that note the largest allocation.
class RecordingResources : public faiss::gpu::StandardGpuResourcesImpl {
   public:
    explicit RecordingResources(size_t temporaryBytes) {
        setPinnedMemory(0);
        setTempMemory(temporaryBytes);
    }

    void* allocMemory(const faiss::gpu::AllocRequest& request) override {
        largest = std::max(largest, request.size);
        return StandardGpuResourcesImpl::allocMemory(request);
    }

    size_t largest = 0;
};

/// Scratch for a large k: rows in batches, within the budget or one row's.
TEST_F(SelectK, ScratchWithinTheBudget) {
    const int64_t rows = 300;
    const int64_t cols = 1 << 17;
    std::mt19937 random(3);
    std::vector<float> keys(rows * cols);
    for (float& key : keys) {
        key = float(int(random() % 100000));
    }
    const DeviceBuffer<float> deviceKeys(keys);
    for (int k : {5000, 60000}) {
        SearchOutput first;
        for (size_t temporary : {size_t(1) << 30, size_t(4) << 20}) {
            const auto resources =
                    std::make_shared<RecordingResources>(temporary);
            resources->initializeForDevice(0);
            faiss::gpu::GpuResourcesProviderFromInstance provider(resources);
            resources->largest = 0;
            const DeviceBuffer<float> outKeys(rows * k);
            const DeviceBuffer<int64_t> outIds(rows * k);
            GpuSelectParams params;
            params.rows = rows;
            params.cols = cols;
            params.k = k;
            params.keys = deviceKeys.data();
            params.outKeys = outKeys.data();
            params.outIds = outIds.data();
            gpu::selectK(&provider, params);
            const SearchOutput out = {outKeys.download(), outIds.download()};

            SelectProblem one;
            one.rows = 1;
            one.cols = cols;
            one.k = k;
            one.device.multiprocessors = multiprocessorCount();
            const size_t budget = std::max(temporary, size_t(32) << 20);
            EXPECT_LE(
                    resources->largest,
                    std::max(budget, selectWorkspaceBytes(one)))
                    << "k=" << k << " temporary memory " << temporary;
            if (first.labels.empty()) {
                first = out;
            }
            ASSERT_TRUE(sameOutput(out, first)) << k;
        }
        for (int64_t r : {int64_t(0), rows / 2, rows - 1}) {
            RowOfKeys row;
            row.keys = keys.data() + r * cols;
            row.cols = cols;
            ASSERT_TRUE(isTopKOfRow(
                    row,
                    topKOfRow(row.keys, cols, row.ids, 0, k, false),
                    first.distances.data() + r * k,
                    first.labels.data() + r * k,
                    k,
                    maxOf(DataType::Float32)))
                    << "row " << r;
        }
    }
}

TEST_F(SelectK, SmallBadArguments) {
    float keys[8] = {};
    float outKeys[4];
    int64_t outIds[4];
    GpuSelectParams good;
    good.rows = 2;
    good.cols = 4;
    good.k = 2;
    good.keys = keys;
    good.outKeys = outKeys;
    good.outIds = outIds;
    const auto refuses = [&](auto change,
                             const std::string& name,
                             const std::string& value) {
        GpuSelectParams params = good;
        change(params);
        return faissThrowsNaming(
                [&] { gpu::selectK(sharedResources(), params); }, name, value);
    };
    using P = GpuSelectParams;
    EXPECT_TRUE(refuses([](P& p) { p.rows = -1; }, "rows", "-1"));
    EXPECT_TRUE(refuses([](P& p) { p.cols = -5; }, "cols", "-5"));
    EXPECT_TRUE(refuses([](P& p) { p.k = 0; }, "k", "0"));
    EXPECT_TRUE(refuses(
            [](P& p) {
                p.k = 2049;
                p.algorithm = SelectAlgorithm::Bits;
            },
            "bits",
            "k = 2049"));
    EXPECT_TRUE(
            refuses([](P& p) { p.algorithm = SelectAlgorithm(77); },
                    "algorithm",
                    "77"));
    EXPECT_TRUE(refuses([](P& p) { p.keyType = DataType(9); }, "keyType", "9"));
    EXPECT_TRUE(refuses([](P& p) { p.idType = IdType(9); }, "idType", "9"));
    EXPECT_TRUE(refuses([](P& p) { p.keys = nullptr; }, "keys", ""));
    EXPECT_TRUE(refuses([](P& p) { p.outKeys = nullptr; }, "outKeys", ""));
    EXPECT_TRUE(refuses([](P& p) { p.outIds = nullptr; }, "outIds", ""));
    EXPECT_TRUE(refuses([](P& p) { p.device = 55; }, "device", "55"));
    EXPECT_TRUE(refuses([](P& p) { p.device = -3; }, "device", "-3"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { gpu::selectK(nullptr, good); }, "provider"));

    good.rows = 0;
    good.keys = nullptr;
    good.outKeys = nullptr;
    good.outIds = nullptr;
    gpu::selectK(sharedResources(), good); // nothing to do
}

} // namespace
} // namespace faiss_bits::test
