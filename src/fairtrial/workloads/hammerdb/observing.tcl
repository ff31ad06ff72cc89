# Taken in by a script of HammerDB's CLI before it builds or drives. HammerDB's own procedures run as they are; around
# them stand lines with the time of day in microseconds, and its end with a code that says whether a user failed.

fconfigure stdout -buffering line ;# into a pipe Tcl would keep lines back until it has 4 KiB of them

proc fairtrial_note {args} {
    puts "fairtrial: [clock microseconds] [join $args]"
}

# What the monitor says around its two counts; this interpreter gets each line as it is said, before the next one.
rename Log fairtrial_log
set fairtrial_lines 0
proc Log {id msg lastline} {
    if {[incr ::fairtrial_lines] > 100000} {
        fairtrial_note too many lines ;# users that go on after each error, without a server
        exit 1
    }
    foreach {name pattern} {
        counting {*Taking start Transaction Count*}
        begun {Timing test period of *}
        ended {*Taking end Transaction Count*}
        counted {*Active * configured*}
    } {
        if {[string match $pattern $lastline]} {
            fairtrial_note $name
        }
    }
    fairtrial_log $id $msg $lastline
}

rename showLCD fairtrial_showLCD
proc showLCD {number} {
    fairtrial_note tpm $number
    fairtrial_showLCD $number
}

# A user that fails ends everything: HammerDB would go on without it, and wait for a whole window.
rename printresult fairtrial_printresult
proc printresult {result threadid} {
    fairtrial_printresult $result $threadid
    if {$result != 0} {
        after 1000 {exit 1} ;# its own words may come after this
    }
}

# As `jobs disable 1`: its database of jobs would be written and synced at every line, beside the server's own disk.
catch {hdbjobs close}
proc hdbjobs {args} {
    return ""
}
dict set genericdict commandline jobs_disable 1

# Users look for the end now and then only. Those that have not seen it in time are cut off by the process's own end.
proc fairtrial_end {limit_s} {
    for {set waited 0} {![vucomplete] && $waited < 2 * $limit_s} {incr waited} {
        after 500
        update
    }
    foreach file [glob -nocomplain -directory $::env(TMP) hdbxtprofile*.log] {
        set profile [open $file]
        puts [read $profile]
        close $profile
    }
    fairtrial_note [expr {[vucomplete] ? "complete" : "cut off"}]
    exit 0
}
