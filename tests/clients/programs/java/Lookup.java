// Looks names up with InetAddress, as ../README.md describes. Java has no lookup of one family: it filters the answer.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

final class Lookup {
    public static void main(String[] arguments) throws Exception {
        System.out.println("{\"version\": \"" + Runtime.version().feature() + "\"}");
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            var words = line.split(" ");
            System.out.println(lookup(words[0], words[1]));
        }
    }

    private static String lookup(String family, String name) {
        var addresses = new ArrayList<String>();
        var outcome = "found";
        long start = System.nanoTime();
        try {
            for (var one : InetAddress.getAllByName(name)) {
                if (isOf(family, one)) {
                    addresses.add('"' + one.getHostAddress() + '"');
                }
            }
            outcome = addresses.isEmpty() ? "no data" : "found";
        } catch (UnknownHostException unknown) {
            outcome = "not found";
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        return String.format(Locale.ROOT, "{\"outcome\": \"%s\", \"seconds\": %f, \"addresses\": [%s]}",
                outcome, seconds, String.join(", ", addresses));
    }

    private static boolean isOf(String family, InetAddress address) {
        return switch (family) {
            case "4" -> address instanceof Inet4Address;
            case "6" -> address instanceof Inet6Address;
            default -> true;
        };
    }
}
