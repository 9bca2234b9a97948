/// Rivals raft_auto, raft_radix and raft_warpsort: RAFT's select_k with sorted
/// output. A shared object of its own, compiled with RAFT's headers and the
/// CCCL that they bring.

#include <raft/core/device_resources.hpp>
#include <raft/core/resource/device_memory_resource.hpp>
#include <raft/matrix/select_k.cuh>
#include <raft/version_config.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>

#include "benchs/rivals/SelectMethod.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {

namespace {

using raft::matrix::SelectAlgo;

/// The default stream, and a pool of memory that gives nothing back: scratch
/// costs no cudaMalloc after the first call, and is never short.
raft::device_resources makeResources() {
    size_t free = 0;
    size_t total = 0;
    BITS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    raft::device_resources resources{cuda::stream_ref{cudaStream_t{nullptr}}};
    raft::resource::set_workspace_resource(
            resources, rmm::mr::cuda_async_memory_resource{}, total);
    return resources;
}

const raft::device_resources& sharedResources() {
    static const raft::device_resources resources = makeResources();
    return resources;
}

class RaftRival : public SelectMethod {
   public:
    RaftRival(const char* name, SelectAlgo algorithm, int maxK)
            : name_(name), algorithm_(algorithm), maxK_(maxK) {}

    std::string name() const override {
        return name_;
    }

    std::pair<std::string, std::string> version() const override {
        return {"raft", RAFT_VERSION};
    }

    std::string refusal(const SelectShape& shape) const override {
        return shape.type != DataType::Float32 ? "built for float keys only"
                : shape.k > maxK_      ? "k is at most " + std::to_string(maxK_)
                : shape.k > shape.cols ? "k is above cols"
                                       : "";
    }

    void prepare(const SelectShape& shape) override {
        shape_ = shape;
    }

    void run(const void* keys, void* outKeys, void* outIds) override {
        const int64_t rows = shape_.rows;
        raft::matrix::select_k<float, int64_t>(
                sharedResources(),
                raft::make_device_matrix_view<const float, int64_t>(
                        static_cast<const float*>(keys), rows, shape_.cols),
                std::nullopt,
                raft::make_device_matrix_view<float, int64_t>(
                        static_cast<float*>(outKeys), rows, shape_.k),
                raft::make_device_matrix_view<int64_t, int64_t>(
                        static_cast<int64_t*>(outIds), rows, shape_.k),
                true,
                true,
                algorithm_);
    }

   private:
    const char* name_;
    SelectAlgo algorithm_;
    int maxK_;
    SelectShape shape_;
};

} // namespace

__attribute__((visibility("default"))) void addRaftRivals(
        SelectMethods& rivals) {
    constexpr int kAny = 1 << 30;
    const auto add = [&](const char* name, SelectAlgo algorithm, int maxK) {
        rivals.push_back(std::make_unique<RaftRival>(name, algorithm, maxK));
    };
    add("raft_auto", SelectAlgo::kAuto, kAny);
    add("raft_radix", SelectAlgo::kRadix11bits, kAny);
    add("raft_warpsort",
        SelectAlgo::kWarpAuto,
        raft::matrix::detail::select::warpsort::kMaxCapacity);
}

} // namespace faiss_bits::bench
