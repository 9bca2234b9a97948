#include "faiss_bits/many/DeviceCopies.h"

#include <algorithm>
#include <array>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

constexpr size_t kPiece = size_t(4) << 20;

/// Whether `device` can read memory of `other` from now on.
bool enablePeerAccess(int device, int other) {
    int can = 0;
    BITS_CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, other));
    if (!can) {
        return false;
    }
    const CurrentDevice scope(device);
    const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
    if (status != cudaSuccess) {
        (void)cudaGetLastError(); // there are limits on the number of peers
    }
    return status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled;
}

} // namespace

struct DeviceCopies::Path {
    Path(int to, int from) : toDevice(to), fromDevice(from) {}
    ~Path() {
        if (pinned) {
            (void)cudaFreeHost(pinned);
        }
    }

    int toDevice;
    int fromDevice;
    bool direct = false;
    char* pinned = nullptr; // two pieces
    /// Of each piece: it is filled, and it is read.
    std::array<std::unique_ptr<CudaEvent>, 2> filled;
    std::array<std::unique_ptr<CudaEvent>, 2> read;
};

DeviceCopies::DeviceCopies(
        const ManyDevices& devices,
        const GpuIndexBitsManyConfig& config)
        : numGroups_(int(devices.groups().size())) {
    for (int to = 0; to < numGroups_; ++to) {
        for (int from = 0; from < numGroups_; ++from) {
            paths_.push_back(std::make_unique<Path>(
                    devices.groups()[to].device,
                    devices.groups()[from].device));
            Path& path = *paths_.back();
            path.direct = config.usePeerAccess &&
                    (path.toDevice == path.fromDevice ||
                     enablePeerAccess(path.toDevice, path.fromDevice));
        }
    }
}

DeviceCopies::~DeviceCopies() = default;

bool DeviceCopies::isDirect(int to, int from) const {
    return path_(to, from).direct;
}

void DeviceCopies::copy(
        int to,
        void* target,
        cudaStream_t targetStream,
        int from,
        const void* source,
        cudaStream_t sourceStream,
        size_t bytes,
        bool keepsSource) {
    if (bytes == 0) {
        return;
    }
    Path& path = path_(to, from);
    if (!path.direct) {
        copyThroughHost_(
                path,
                static_cast<char*>(target),
                targetStream,
                static_cast<const char*>(source),
                sourceStream,
                bytes);
        return;
    }
    {
        const CurrentDevice scope(path.fromDevice);
        CudaEvent ready;
        ready.record(sourceStream);
        ready.holdUp(targetStream);
    }
    const CurrentDevice scope(path.toDevice);
    BITS_CUDA_CHECK(cudaMemcpyPeerAsync(
            target,
            path.toDevice,
            source,
            path.fromDevice,
            bytes,
            targetStream));
    if (!keepsSource) {
        CudaEvent done;
        done.record(targetStream);
        done.holdUp(sourceStream);
    }
}

void DeviceCopies::copyThroughHost_(
        Path& path,
        char* target,
        cudaStream_t targetStream,
        const char* source,
        cudaStream_t sourceStream,
        size_t bytes) {
    if (!path.pinned) {
        std::array<std::unique_ptr<CudaEvent>, 2> filled;
        std::array<std::unique_ptr<CudaEvent>, 2> read;
        for (int slot = 0; slot < 2; ++slot) {
            const CurrentDevice from(path.fromDevice);
            filled[slot] = std::make_unique<CudaEvent>();
            const CurrentDevice to(path.toDevice);
            read[slot] = std::make_unique<CudaEvent>();
        }
        void* memory = nullptr;
        BITS_CUDA_CHECK(
                cudaHostAlloc(&memory, 2 * kPiece, cudaHostAllocPortable));
        path.pinned = static_cast<char*>(memory);
        path.filled = std::move(filled);
        path.read = std::move(read);
    }
    int slot = 0;
    for (size_t at = 0; at < bytes; at += kPiece, slot = 1 - slot) {
        const size_t now = std::min(kPiece, bytes - at);
        char* const piece = path.pinned + slot * kPiece;
        {
            const CurrentDevice scope(path.fromDevice);
            path.read[slot]->holdUp(sourceStream); // of the copy before
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    piece,
                    source + at,
                    now,
                    cudaMemcpyDeviceToHost,
                    sourceStream));
            path.filled[slot]->record(sourceStream);
        }
        const CurrentDevice scope(path.toDevice);
        path.filled[slot]->holdUp(targetStream);
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                target + at, piece, now, cudaMemcpyHostToDevice, targetStream));
        path.read[slot]->record(targetStream);
    }
}

} // namespace faiss_bits::gpu::detail
