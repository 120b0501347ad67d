#include "expect.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
namespace fs = std::filesystem;
RUN
{
    char name[] = "/tmp/abiaudit-fs-XXXXXX";
    EXPECT(mkdtemp(name));
    fs::path root(name);
    fs::create_directories(root / "a" / "b");
    std::ofstream(root / "a" / "file.txt") << "text";
    EXPECT(fs::file_size(root / "a" / "file.txt") == 4);
    fs::copy_file(root / "a" / "file.txt", root / "copy");
    fs::create_symlink("copy", root / "link");
    EXPECT(fs::read_symlink(root / "link") == "copy");
    EXPECT(fs::equivalent(root / "link", root / "copy"));
    int entries = 0;
    for (auto &entry : fs::recursive_directory_iterator(root))
        entries += entry.exists();
    EXPECT(entries == 5);
    EXPECT((root / "a" / ".." / "copy").lexically_normal() == root / "copy");
    EXPECT(fs::last_write_time(root / "copy") <= fs::file_time_type::clock::now() + std::chrono::hours(1));
    EXPECT(fs::space(root).capacity > 0);
    bool caught = false;
    try {
        (void)fs::file_size(root / "missing");
    } catch (const fs::filesystem_error &error) {
        caught = error.path1() == root / "missing" && std::string(error.what()).find("missing") != std::string::npos;
    }
    EXPECT(caught);
    EXPECT(fs::remove_all(root) == 6);
    return 0;
}
