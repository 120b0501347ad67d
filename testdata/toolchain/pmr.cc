#include "expect.h"
#include <memory_resource>
#include <string>
#include <vector>
RUN
{
    std::pmr::monotonic_buffer_resource arena;
    std::pmr::vector<std::pmr::string> strings(&arena);
    for (int i = 0; i < 100; i++)
        strings.emplace_back("a string that is too long to be kept inside the object");
    EXPECT(strings.back().get_allocator().resource() == &arena);
    std::pmr::unsynchronized_pool_resource pool;
    std::pmr::synchronized_pool_resource shared(&pool);
    std::pmr::vector<int> numbers({1, 2, 3}, &shared);
    EXPECT(numbers.size() == 3);
    EXPECT(std::pmr::get_default_resource() == std::pmr::new_delete_resource());
    auto before = std::pmr::set_default_resource(&arena);
    std::pmr::string text("another string that is too long to be kept inside the object");
    EXPECT(text.get_allocator().resource() == &arena);
    std::pmr::set_default_resource(before);
    bool caught = false;
    try {
        std::pmr::vector<int> none(1, std::pmr::null_memory_resource());
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    EXPECT(caught);
    return 0;
}
