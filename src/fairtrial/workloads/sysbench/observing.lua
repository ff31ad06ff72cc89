-- Runs a script of sysbench as it is, and reports each interval in whole numbers, with the time on CLOCK_MONOTONIC.
-- sysbench's own lines have rates of two decimals, from which counts cannot be got back.

local ffi = require("ffi")
ffi.cdef[[
typedef struct { long seconds; long nanoseconds; } fairtrial_time;
int clock_gettime(int clock, fairtrial_time *now);
]]
local CLOCK_MONOTONIC = 1

local script = os.getenv("OBSERVED_SCRIPT") -- a path, or the name of one that sysbench brings
sysbench.cmdline.script_path = script
if script:find("/", 1, true) then
   dofile(script)
else
   require(script)
end

local theirs = sysbench.hooks.report_intermediate
local now = ffi.new("fairtrial_time")

function sysbench.hooks.report_intermediate(stat)
   ffi.C.clock_gettime(CLOCK_MONOTONIC, now)
   -- In one piece: the reports of the end come from another thread, and `print` writes the line's end by itself.
   io.write(string.format("fairtrial: %d%09d %.9f %.0f %.0f %.0f %.0f %.0f %.0f\n",
                          tonumber(now.seconds), tonumber(now.nanoseconds), stat.time_total,
                          stat.events, stat.reads, stat.writes, stat.other, stat.errors, stat.reconnects))
   if theirs then
      theirs(stat)
   end
end
