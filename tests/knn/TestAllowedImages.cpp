/// Copies of what a list of vectors has of images of 16 and of 8 bits, which of
/// them are made, and norms that leave out what a filter does.

#include <random>

#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/tensor/ListedImage.h"
#include "tests/common/GpuTest.h"
#include "tests/knn/ByteRows.h"

namespace faiss_bits::test {
namespace {

constexpr uint32_t kMostCost = 50;
constexpr uint32_t kInBytes = 7;
constexpr uint32_t kInHalves = ByteSearch::kFar;

template <class T>
std::vector<T> read(const void* from, size_t count) {
    std::vector<T> out(count);
    BITS_CUDA_CHECK(cudaMemcpy(
            out.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
}

std::vector<float> makeRows(int64_t n, int d) {
    std::mt19937 random(unsigned(n + d));
    std::vector<float> out(size_t(n) * d);
    for (float& one : out) {
        one = float(random() >> 8) * 0x1p-24f - 0.5f;
    }
    return out;
}

/// A row of slabs of 128 bytes, in the order of its bytes.
std::vector<uint8_t> rowOf(
        const std::vector<uint8_t>& pieces,
        int64_t row,
        int slabs) {
    std::vector<uint8_t> out;
    for (int slab = 0; slab < slabs; ++slab) {
        for (int piece = 0; piece < 8; ++piece) {
            const size_t at =
                    ((row / 128 * slabs + slab) * 128 + row % 128) * 128 +
                    (piece ^ row % 8) * 16;
            out.insert(
                    out.end(), pieces.begin() + at, pieces.begin() + at + 16);
        }
    }
    return out;
}

/// The norm step of a row: 16 numbers of 16 bits.
std::vector<uint16_t> stepOf(const std::vector<uint16_t>& steps, int64_t row) {
    std::vector<uint16_t> out;
    for (int k = 0; k < 16; ++k) {
        out.push_back(steps[row * 16 + (row % 128 / 4 % 2 * 8 + k) % 16]);
    }
    return out;
}

/// An image of vectors, a list of them, and room for copies, full of one byte.
class Copies {
   public:
    static constexpr int kFill = 0x7E;

    Copies(int64_t n, int64_t listed, int d, const SpreadRows& rows)
            : n_(n),
              listed_(listed),
              d_(d),
              x_(makeRows(n, d), d, false),
              halves_(tensorImageBytes(listed, d, false), kFill),
              bytes_(byteImageBytes(listed, d, false), kFill),
              made_(2, 0xFF) {
        std::mt19937 random(3);
        ids_.resize(listed);
        for (int32_t& id : ids_) {
            id = random() % 10 ? int32_t(random() % n) : -1;
        }
        list_ = DeviceBuffer<int32_t>(ids_);
        images_.from = x_.image;
        images_.to = tensorImageAt(halves_.data(), listed, d, false);
        images_.fromBytes = x_.byteImage;
        images_.toBytes = byteImageAt(bytes_.data(), listed, d, false);
        images_.rows = rows;
        images_.d = d;
        images_.ids = list_.data();
        images_.n = listed;
        images_.mostCost = kMostCost;
    }

    /// As one of the calls of a search. All costs are to say whether the scan
    /// is in 8 bits.
    void run(const std::vector<uint32_t>& costs, bool areBytes) {
        DeviceBuffer<uint32_t> given(costs);
        images_.costs = costs.empty() ? nullptr : given.data();
        images_.tiles = uint32_t(costs.size());
        images_.made = calls_ > 0 ? made_.data() + (calls_ - 1) % 2 : nullptr;
        images_.makes = made_.data() + calls_ % 2;
        ++calls_;
        runListedImages(images_, nullptr);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        if (costs.empty()) {
            return;
        }
        for (const uint32_t cost : given.download()) {
            ASSERT_EQ(cost <= kMostCost, areBytes) << "call " << calls_;
        }
    }

    /// Room as it was before.
    void fill() {
        halves_.fillBytes(kFill);
        bytes_.fillBytes(kFill);
    }

    void checkHalves(bool areThere) const {
        const TensorImageLayout to(listed_, d_);
        const TensorImageLayout from(n_, d_);
        const auto found = read<uint8_t>(images_.to.pieces, to.pieceBytes());
        const auto whole =
                read<uint8_t>(images_.from.pieces, from.pieceBytes());
        const auto steps =
                read<uint16_t>(images_.to.normSteps, to.capacity * 16);
        const auto fromSteps =
                read<uint16_t>(images_.from.normSteps, from.capacity * 16);
        for (int64_t i = 0; i < to.capacity; ++i) {
            const int64_t row = sourceOf(i);
            const auto mine = rowOf(found, i, to.slabs);
            ASSERT_EQ(
                    mine,
                    !areThere         ? std::vector<uint8_t>(mine.size(), kFill)
                            : row < 0 ? std::vector<uint8_t>(mine.size(), 0)
                                      : rowOf(whole, row, from.slabs))
                    << "row " << i;
            std::vector<uint16_t> infinite(16, 0);
            infinite[0] = 0x7c00;
            ASSERT_EQ(
                    stepOf(steps, i),
                    !areThere         ? std::vector<uint16_t>(16, 0x7E7E)
                            : row < 0 ? infinite
                                      : stepOf(fromSteps, row))
                    << "row " << i;
        }
    }

    void checkBytes(bool areThere) const {
        const ByteImageLayout to(listed_, d_);
        const ByteImageLayout from(n_, d_);
        const auto found =
                read<uint8_t>(images_.toBytes.pieces, to.pieceBytes());
        const auto whole =
                read<uint8_t>(images_.fromBytes.pieces, from.pieceBytes());
        const bool hasNorms = hasByteNorms(d_);
        ASSERT_EQ(images_.toBytes.norms != nullptr, hasNorms);
        std::vector<int32_t> norms, fromNorms;
        if (hasNorms) {
            norms = read<int32_t>(images_.toBytes.norms, to.capacity);
            fromNorms = read<int32_t>(images_.fromBytes.norms, from.capacity);
        }
        for (int64_t i = 0; i < to.capacity; ++i) {
            const int64_t row = sourceOf(i);
            const auto mine = rowOf(found, i, to.slabs);
            ASSERT_EQ(
                    mine,
                    !areThere         ? std::vector<uint8_t>(mine.size(), kFill)
                            : row < 0 ? std::vector<uint8_t>(mine.size(), 0)
                                      : rowOf(whole, row, from.slabs))
                    << "row " << i;
            if (hasNorms) {
                ASSERT_EQ(
                        norms[i],
                        !areThere         ? 0x7E7E7E7E
                                : row < 0 ? -ByteNorms::kNone
                                          : fromNorms[row])
                        << "row " << i;
            }
        }
    }

    /// Norms in float32: scans in 8 bits of long vectors read them too.
    void checkNorms() const {
        const TensorImageLayout to(listed_, d_);
        const auto norms = read<float>(images_.to.norms, to.capacity);
        const auto fromNorms = read<float>(images_.from.norms, n_);
        for (int64_t i = 0; i < to.capacity; ++i) {
            const int64_t row = sourceOf(i);
            ASSERT_EQ(norms[i], row < 0 ? INFINITY : fromNorms[row])
                    << "row " << i;
        }
    }

   private:
    int64_t sourceOf(int64_t i) const {
        return i < listed_ && ids_[i] >= 0
                ? int64_t(images_.rows.rowOf(uint32_t(ids_[i])))
                : -1;
    }

    int64_t n_;
    int64_t listed_;
    int d_;
    ByteRows x_;
    DeviceBuffer<uint8_t> halves_;
    DeviceBuffer<uint8_t> bytes_;
    DeviceBuffer<uint32_t> made_;
    std::vector<int32_t> ids_;
    DeviceBuffer<int32_t> list_;
    ListedImages images_;
    int calls_ = 0;
};

class AllowedImages : public GpuTest {};

TEST_F(AllowedImages, SmallCopies) {
    for (int d : {65, 96, 128, 130, 256, 512, 513, 1024}) {
        for (int64_t listed : {1, 127, 128, 129, 700}) {
            for (const SpreadRows& rows : {SpreadRows{}, spreadRowsOf(903)}) {
                SCOPED_TRACE(
                        "d=" + std::to_string(d) +
                        " listed=" + std::to_string(listed));
                Copies copies(903, listed, d, rows);
                copies.run({kInBytes, kInBytes, kInBytes}, true);
                copies.run({kInHalves, kInBytes, kInHalves}, false);
                copies.checkHalves(true);
                copies.checkBytes(true);
                copies.checkNorms();
            }
        }
    }
}

/// What is not scanned is not made; and what is there is left alone.
TEST_F(AllowedImages, SmallMadeOnce) {
    for (int d : {128, 514}) {
        Copies bytes(500, 300, d, {});
        std::vector<uint32_t> costs(300, kInBytes);
        bytes.run(costs, true);
        bytes.checkHalves(false);
        bytes.checkBytes(true);
        bytes.checkNorms();
        bytes.fill();
        bytes.run(costs, true);
        bytes.checkHalves(false);
        bytes.checkBytes(false);
        costs[299] = kInHalves;
        bytes.run(costs, false);
        bytes.checkHalves(true);
        bytes.checkBytes(false);
        bytes.fill();
        bytes.run(costs, false);
        bytes.checkHalves(false);
        bytes.checkBytes(false);

        Copies halves(500, 300, d, {});
        halves.run({kInHalves}, false);
        halves.checkHalves(true);
        halves.checkBytes(false);
        halves.fill();
        halves.run({}, false); // a scan in 16 bits alone
        halves.checkHalves(false);
        halves.run({0, 0, 0}, true);
        halves.checkBytes(true);
        halves.checkHalves(false);
        halves.checkNorms();
        if (HasFatalFailure()) {
            return;
        }
    }
}

/// All tiles go the same way, by the sum of their costs and the copies that are
/// not there. Many blocks decide while one writes what is decided.
TEST_F(AllowedImages, SmallOneWayForAll) {
    constexpr int64_t kListed = 40000;
    for (uint32_t tiles : {3u, 40u, 77u}) {
        // One tile has all but a little, so that tiles want different ways.
        const auto costsOf = [&](uint32_t sum) {
            std::vector<uint32_t> costs(tiles, 1);
            costs[tiles / 2] = sum - (tiles - 1);
            return costs;
        };
        SCOPED_TRACE("tiles=" + std::to_string(tiles));
        Copies bytes(kListed, kListed, 128, {});
        bytes.run(costsOf((tiles + 2) * kMostCost), true);
        bytes.checkBytes(true);
        bytes.checkHalves(false);
        bytes.run(costsOf((tiles + 4) * kMostCost), true);
        bytes.run(costsOf((tiles + 4) * kMostCost + 1), false);
        bytes.checkHalves(true);
        bytes.run(costsOf(tiles * kMostCost), true); // both are there
        bytes.run(costsOf(tiles * kMostCost + 1), false);

        Copies halves(kListed, kListed, 128, {});
        halves.run(costsOf((tiles + 2) * kMostCost + 1), false);
        halves.run(costsOf((tiles - 2) * kMostCost + 1), false);
        halves.checkBytes(false);
        halves.run(costsOf((tiles - 2) * kMostCost), true);
        halves.checkBytes(true);
    }
}

TEST_F(AllowedImages, SmallRows) {
    for (int d : {65, 130}) {
        for (int64_t n : {1, 127, 128, 129, 1500}) {
            const ByteRows x(makeRows(n, d), d, false);
            std::mt19937 random(9);
            std::vector<int32_t> ids(n);
            std::vector<uint32_t> bits(256);
            for (uint32_t& one : bits) {
                one = random();
            }
            for (int32_t& id : ids) {
                id = int32_t(random() % (bits.size() * 32));
            }
            const TensorImageLayout layout(n, d);
            const DeviceBuffer<int32_t> list(ids);
            const DeviceBuffer<uint32_t> allowed(bits);
            DeviceBuffer<uint8_t> pieces(layout.pieceBytes());
            TensorImage to = x.image;
            to.pieces = pieces.data();
            runAllowedRows(
                    x.image, d, list.data(), n, allowed.data(), to, nullptr);
            BITS_CUDA_CHECK(cudaDeviceSynchronize());
            const auto from =
                    read<uint8_t>(x.image.pieces, layout.pieceBytes());
            const auto found = pieces.download();
            for (int64_t i = 0; i < n; ++i) {
                const auto mine = rowOf(found, i, layout.slabs);
                if (bits[ids[i] / 32] >> ids[i] % 32 & 1) {
                    ASSERT_EQ(mine, rowOf(from, i, layout.slabs)) << i;
                    continue;
                }
                for (size_t at = 0; at < mine.size(); at += 2) {
                    ASSERT_EQ(mine[at] | mine[at + 1] << 8, 0x7fff) << i;
                }
            }
        }
    }
}

TEST_F(AllowedImages, SmallNorms) {
    for (int d : {65, 130}) {
        for (int64_t n : {1, 255, 256, 257, 1500}) {
            const ByteRows x(makeRows(n, d), d, false);
            std::mt19937 random(9);
            std::vector<int32_t> ids(n);
            std::vector<uint32_t> bits(256);
            for (uint32_t& one : bits) {
                one = random() & random();
            }
            uint32_t count = 0;
            for (int32_t& id : ids) {
                id = int32_t(random() % (bits.size() * 32));
                count += bits[id / 32] >> id % 32 & 1;
            }
            const TensorImageLayout layout(n, x.d);
            const DeviceBuffer<int32_t> list(ids);
            const DeviceBuffer<uint32_t> allowed(bits);
            DeviceBuffer<float> norms(layout.capacity);
            DeviceBuffer<uint16_t> steps(layout.capacity * 16);
            DeviceBuffer<uint32_t> found(1);
            TensorImage to = x.image;
            to.norms = norms.data();
            to.normSteps = steps.data();
            for (uint32_t* out :
                 {found.data(), static_cast<uint32_t*>(nullptr)}) {
                runAllowedNorms(
                        x.image,
                        list.data(),
                        n,
                        allowed.data(),
                        to,
                        out,
                        nullptr);
            }
            BITS_CUDA_CHECK(cudaDeviceSynchronize());
            EXPECT_EQ(found.download()[0], count);
            const auto fromSteps =
                    read<uint16_t>(x.image.normSteps, layout.capacity * 16);
            const auto fromNorms = read<float>(x.image.norms, layout.capacity);
            const auto toSteps = steps.download();
            const auto toNorms = norms.download();
            std::vector<uint16_t> infinite(16, 0);
            infinite[0] = 0x7c00;
            for (int64_t i = 0; i < layout.capacity; ++i) {
                const bool isAllowed =
                        i < n && (bits[ids[i] / 32] >> ids[i] % 32 & 1);
                ASSERT_EQ(toNorms[i], isAllowed ? fromNorms[i] : INFINITY) << i;
                ASSERT_EQ(
                        stepOf(toSteps, i),
                        isAllowed ? stepOf(fromSteps, i) : infinite)
                        << i;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
