/// Temporary memory begins at a multiple of 256 bytes wherever FAISS's does,
/// and ends within it.

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "faiss_bits/common/GpuStaging.h"
#include "tests/flat/FakeResources.h"

namespace faiss_bits::test {
namespace {

using namespace gpu::detail;

/// Memory so many bytes behind a multiple of 256.
class ShiftedResources : public FakeResources {
   public:
    explicit ShiftedResources(size_t shift) : FakeResources(0), shift_(shift) {}

    void* allocMemory(const faiss::gpu::AllocRequest& request) override {
        memory_.resize(request.size + 512);
        const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
        given_ = (begin + 255) / 256 * 256 + shift_;
        end_ = given_ + request.size;
        return reinterpret_cast<void*>(given_);
    }
    void deallocMemory(int, void* data) override {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(data), given_);
        ++released;
    }

    uintptr_t given() const {
        return given_;
    }
    uintptr_t end() const {
        return end_;
    }
    int released = 0;

   private:
    size_t shift_;
    std::vector<char> memory_;
    uintptr_t given_ = 0;
    uintptr_t end_ = 0;
};

TEST(TemporaryMemory, BeginsAtMultiplesOf256) {
    fake::reset(fake::Schedule::Lazy, 1);
    for (const size_t shift : {0, 16, 128, 240, 255}) {
        for (const size_t bytes : {1, 255, 256, 257, 100000}) {
            ShiftedResources resources(shift);
            const cudaStream_t stream = resources.getDefaultStream(0);
            {
                const TemporaryMemory memory =
                        allocTemporary({&resources, 0, stream, stream}, bytes);
                const auto at = reinterpret_cast<uintptr_t>(memory.get());
                EXPECT_EQ(at % 256, 0) << shift << " " << bytes;
                EXPECT_GE(at, resources.given()) << shift << " " << bytes;
                EXPECT_LE(at + bytes, resources.end()) << shift << " " << bytes;
            }
            EXPECT_EQ(resources.released, 1) << shift << " " << bytes;
        }
    }
}

TEST(TemporaryMemory, GoesOnceWhoeverHasIt) {
    fake::reset(fake::Schedule::Lazy, 1);
    ShiftedResources resources(16);
    const cudaStream_t stream = resources.getDefaultStream(0);
    TemporaryMemory empty;
    EXPECT_EQ(empty.get(), nullptr);
    {
        TemporaryMemory one =
                allocTemporary({&resources, 0, stream, stream}, 100);
        void* const at = one.get();
        TemporaryMemory other = std::move(one);
        EXPECT_EQ(other.get(), at);
        empty = std::move(other);
        EXPECT_EQ(empty.get(), at);
        EXPECT_EQ(resources.released, 0);
    }
    EXPECT_EQ(resources.released, 0);
    empty.release();
    EXPECT_EQ(empty.get(), nullptr);
    EXPECT_EQ(resources.released, 1);
}

} // namespace
} // namespace faiss_bits::test
